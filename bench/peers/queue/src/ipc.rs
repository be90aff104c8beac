//! ipc-channel 0.23: a Unix socket, and what is too long for it in pieces.

use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use ipc_channel::TryRecvError;
use ipc_channel::ipc::{
    self, IpcBytesReceiver, IpcBytesSender, IpcReceiver, IpcSender, IpcSharedMemory,
};
use procwright_bench::subject_queue::{Pause, Plan, Rx, Tx, Way};

/// The bytes themselves.
pub struct Bytes;

/// A piece of shared memory for each message.
pub struct Memory;

pub struct Common<T, R>(Mutex<T>, Mutex<Option<R>>);

pub struct Receiver<R>(R, Option<Pause>);

pub struct Sender<T>(T, Vec<u8>);

macro_rules! way {
    ($way:ty, $channel:expr, $tx:ty, $rx:ty, |$sender:ident, $bytes:ident| $send:expr) => {
        impl Way for $way {
            type Common = Common<$tx, $rx>;
            type Rx = Receiver<$rx>;
            type Tx = Sender<$tx>;

            fn common(plan: &Plan) -> Result<Self::Common, String> {
                if plan.room > 0 {
                    return Err("it has a socket's buffer".into());
                }
                let (tx, rx) = $channel.map_err(|error| error.to_string())?;
                Ok(Common(Mutex::new(tx), Mutex::new(Some(rx))))
            }

            fn receiver(common: &Self::Common, plan: &Plan, _: &[UnixStream]) -> Self::Rx {
                let rx = common.1.lock().expect("the channel").take();
                let pause = plan.is_spinning.then(|| plan.pause());
                Receiver(rx.expect("the receiver"), pause)
            }

            fn sender(common: &Self::Common, plan: &Plan, _: usize, _: &UnixStream) -> Self::Tx {
                let tx = common.0.lock().expect("the channel").clone();
                Sender(tx, vec![0; plan.length])
            }
        }

        impl Rx for Receiver<$rx> {
            fn recv(&mut self, mut read: impl FnMut(&[u8])) {
                let Receiver(rx, pause) = self;
                let Some(pause) = pause else {
                    return read(&rx.recv().expect("a message"));
                };
                loop {
                    match rx.try_recv() {
                        Ok(bytes) => return read(&bytes),
                        Err(TryRecvError::Empty) => pause.pause(),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }

        impl Tx for Sender<$tx> {
            fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
                let Sender($sender, $bytes) = self;
                let $bytes = &mut $bytes[..length];
                fill($bytes);
                $send.expect("the receiver");
            }
        }
    };
}

way!(
    Bytes,
    ipc::bytes_channel(),
    IpcBytesSender,
    IpcBytesReceiver,
    |sender, bytes| sender.send(bytes)
);
way!(
    Memory,
    ipc::channel::<IpcSharedMemory>(),
    IpcSender<IpcSharedMemory>,
    IpcReceiver<IpcSharedMemory>,
    |sender, bytes| sender.send(IpcSharedMemory::from_bytes(bytes))
);

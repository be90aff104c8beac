//! A POSIX message queue.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use nix::errno::Errno;
use nix::mqueue::{
    MQ_OFlag, MqAttr, MqdT, mq_getattr, mq_open, mq_receive, mq_send, mq_set_nonblock, mq_unlink,
};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::Mode;
use procwright_bench::subject_queue::{Pause, Plan, Rx, Tx, Way};

use crate::name;

pub struct Mq;

/// Inherited by all; it goes with the last of them.
pub struct Common(Arc<MqdT>);

pub struct End {
    queue: Arc<MqdT>,
    bytes: Vec<u8>,
    pause: Pause,
}

/// Never more memory than that.
const MOST: usize = 16 << 20;

impl Way for Mq {
    type Common = Common;
    type Rx = End;
    type Tx = End;

    fn common(plan: &Plan) -> Result<Common, String> {
        if plan.room > 0 {
            return Err("it has at most 16 MiB".into());
        }
        // As many as may be had: only root has more than ten, and longer than 8 KiB.
        let all = nix::sys::resource::RLIM_INFINITY;
        let _ = setrlimit(Resource::RLIMIT_MSGQUEUE, all, all);
        let most = (MOST / plan.length).clamp(4, 4096);
        let mut error = Errno::EINVAL;
        for messages in [most, most.min(256), most.min(64), 10, 4] {
            let name = format!("/{}", name());
            let attr = MqAttr::new(0, messages as i64, plan.length as i64, 0);
            let flags = MQ_OFlag::O_CREAT | MQ_OFlag::O_EXCL | MQ_OFlag::O_RDWR;
            match mq_open(
                name.as_str(),
                flags,
                Mode::S_IRUSR | Mode::S_IWUSR,
                Some(&attr),
            ) {
                Ok(queue) => {
                    let _ = mq_unlink(name.as_str());
                    if plan.is_spinning {
                        mq_set_nonblock(&queue).map_err(|error| error.to_string())?;
                    }
                    return Ok(Common(Arc::new(queue)));
                }
                Err(refused) => error = refused,
            }
        }
        Err(format!("mq_open for messages of {}: {error}", plan.length))
    }

    fn receiver(common: &Common, plan: &Plan, _: &[UnixStream]) -> End {
        common.end(plan)
    }

    fn sender(common: &Common, plan: &Plan, _: usize, _: &UnixStream) -> End {
        common.end(plan)
    }
}

impl Common {
    fn end(&self, plan: &Plan) -> End {
        let Common(queue) = self;
        assert_eq!(
            mq_getattr(queue).expect("the queue").msgsize(),
            plan.length as i64
        );
        End {
            queue: Arc::clone(queue),
            bytes: vec![0; plan.length],
            pause: plan.pause(),
        }
    }
}

impl Rx for End {
    fn recv(&mut self, mut read: impl FnMut(&[u8])) {
        loop {
            match mq_receive(&self.queue, &mut self.bytes, &mut 0) {
                Ok(length) => return read(&self.bytes[..length]),
                Err(Errno::EAGAIN) => self.pause.pause(),
                Err(Errno::EINTR) => {}
                Err(error) => panic!("mq_receive: {error}"),
            }
        }
    }
}

impl Tx for End {
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        let bytes = &mut self.bytes[..length];
        fill(bytes);
        loop {
            match mq_send(&self.queue, bytes, 0) {
                Ok(()) => return,
                Err(Errno::EAGAIN) => self.pause.pause(),
                Err(Errno::EINTR) => {}
                Err(error) => panic!("mq_send: {error}"),
            }
        }
    }
}

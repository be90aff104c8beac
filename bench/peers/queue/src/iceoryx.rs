//! iceoryx2 0.10: publish and subscribe of slices that are made and read in place,
//! losing none; who sleeps is woken by an event of a service beside it, which is told
//! of with each message. A publisher that finds no room waits as it does by itself.

use std::os::unix::net::UnixStream;

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::{event, publish_subscribe};
use procwright_bench::subject_queue::{Pause, Plan, Rx, Tx, Way, party};

use crate::{name, room};

pub struct Iceoryx2;

type Bytes = publish_subscribe::PortFactory<ipc::Service, [u8], ()>;
type Bell = event::PortFactory<ipc::Service>;

/// What both ends of a queue are of. The services go before the node.
struct Services {
    bell: Bell,
    bytes: Bytes,
    _node: Node<ipc::Service>,
}

pub struct Receiver {
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    listener: Listener<ipc::Service>,
    pause: Option<Pause>,
    _services: Services,
}

pub struct Sender {
    publisher: Publisher<ipc::Service, [u8], ()>,
    /// Only of who sleeps.
    notifier: Option<Notifier<ipc::Service>>,
    retry: Pause,
    _services: Services,
}

impl Services {
    fn new(name: &str, plan: &Plan) -> Services {
        set_log_level(LogLevel::Fatal);
        let node = NodeBuilder::new().create::<ipc::Service>().expect("a node");
        let name: ServiceName = name.try_into().expect("a name");
        let bytes = node
            .service_builder(&name)
            .publish_subscribe::<[u8]>()
            .payload_alignment(Alignment::new(64).expect("a power of 2"))
            .enable_safe_overflow(false)
            .history_size(0)
            .max_subscribers(1)
            .max_publishers(plan.senders)
            .max_nodes(plan.senders + 1)
            .subscriber_max_buffer_size(room(plan, 4))
            .subscriber_max_borrowed_samples(1)
            .open_or_create()
            .expect("a service");
        let bell = node
            .service_builder(&name)
            .event()
            .max_notifiers(plan.senders)
            .max_listeners(1)
            .max_nodes(plan.senders + 1)
            .open_or_create()
            .expect("a service");
        Services {
            bell,
            bytes,
            _node: node,
        }
    }
}

impl Way for Iceoryx2 {
    type Common = String;
    type Rx = Receiver;
    type Tx = Sender;

    fn common(_: &Plan) -> Result<String, String> {
        Ok(name())
    }

    fn receiver(name: &String, plan: &Plan, doors: &[UnixStream]) -> Receiver {
        let services = Services::new(name, plan);
        let receiver = Receiver {
            subscriber: services
                .bytes
                .subscriber_builder()
                .create()
                .expect("a subscriber"),
            listener: services
                .bell
                .listener_builder()
                .create()
                .expect("a listener"),
            pause: plan.is_spinning.then(|| plan.pause()),
            _services: services,
        };
        doors.iter().for_each(|door| party::tell(door, 0));
        receiver
    }

    fn sender(name: &String, plan: &Plan, _: usize, door: &UnixStream) -> Sender {
        party::hear(door);
        let services = Services::new(name, plan);
        let publisher = services
            .bytes
            .publisher_builder()
            .initial_max_slice_len(plan.length)
            .max_loaned_samples(1)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()
            .expect("a publisher");
        let notifier = services.bell.notifier_builder().create();
        Sender {
            publisher,
            retry: plan.pause(),
            notifier: (!plan.is_spinning).then(|| notifier.expect("a notifier")),
            _services: services,
        }
    }
}

impl Rx for Receiver {
    #[inline]
    fn recv(&mut self, mut read: impl FnMut(&[u8])) {
        loop {
            if let Some(sample) = self.subscriber.receive().expect("a sample") {
                return read(sample.payload());
            }
            match &mut self.pause {
                Some(pause) => pause.pause(),
                None => {
                    // Told of before we look, and looked at after we were told.
                    self.listener.blocking_wait(|_| ()).expect("an event");
                }
            }
        }
    }

    /// Messages for a subscriber that has not connected are thrown away when there is
    /// no room, whatever the strategy. It connects when it looks.
    fn meet(&mut self) {
        let sample = self.subscriber.receive().expect("no sample");
        assert!(sample.is_none(), "nobody may send yet");
    }
}

impl Tx for Sender {
    #[inline]
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        loop {
            let mut sample = self.publisher.loan_slice_uninit(length).expect("a sample");
            let bytes = sample.payload_mut();
            // SAFETY: written before anything is read.
            fill(unsafe { &mut *(bytes as *mut [_] as *mut [u8]) });
            // SAFETY: all of it was written.
            let sample = unsafe { sample.assume_init() };
            // To nobody, where the subscriber is not seen to be connected yet and there
            // is no room: whatever the strategy, that is thrown away.
            if sample.send().expect("the subscriber") > 0 {
                break;
            }
            self.retry.pause();
        }
        if let Some(notifier) = &self.notifier {
            notifier.notify().expect("the listener");
        }
    }
}

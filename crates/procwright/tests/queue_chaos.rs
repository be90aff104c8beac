//! Senders that are stopped, continued and killed at random.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::sys;
use procwright::queue::{Error, Options, Receiver, Sender};

/// Messages of any length, each with its sender's number, its own, and bytes that
/// follow from both.
fn message(sender: u64, number: u64, bytes: &mut Vec<u8>) {
    let seed = (sender ^ number << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let length = match seed >> 60 {
        0 => seed >> 44 & 0x7fff,
        _ => seed >> 50 & 0x7f,
    };
    bytes.clear();
    bytes.extend(sender.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend((0..length).map(|i| (seed >> (i % 8)) as u8));
}

fn flood(mut queue: Sender, sender: u64) {
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        match number % 5 {
            // Several in one store.
            0 => {
                let mut three = [Vec::new(), Vec::new(), Vec::new()];
                for bytes in &mut three {
                    message(sender, number, bytes);
                    number += 1;
                }
                queue.send_many(three.iter().map(Vec::as_slice)).unwrap();
            }
            _ => {
                message(sender, number, &mut bytes);
                queue.send(&bytes).unwrap();
                number += 1;
            }
        }
        if number % 64 == 0 {
            std::thread::yield_now();
        }
    }
}

fn start(receiver: &mut Receiver, sender: u64) -> i32 {
    let invitation = receiver.invite().unwrap();
    sys::fork_pausing_after(move || {
        // The lane of one who was killed may not be free yet.
        if let Ok(queue) = Sender::attach(invitation) {
            flood(queue, sender);
        }
    })
}

alone! {
    fn whoever_is_killed_or_stopped_the_rest_goes_on() {
        let options = Options::new().lanes(8).first(4096).limit(1 << 20);
        let mut receiver = options.create().unwrap();
        let mut random = common::random(7);
        let mut dice = move |sides: u64| random() % sides;
        let mut senders = BTreeMap::new();
        let mut next: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut born, mut killed, mut received) = (0, 0, 0u64);
        let mut expected = Vec::new();
        for _ in 0..common::scaled(600, 200_000) {
            match dice(5) {
                0 if senders.len() < 5 => {
                    born += 1;
                    senders.insert(born, start(&mut receiver, born));
                }
                1 if !senders.is_empty() => {
                    let at = dice(senders.len() as u64) as usize;
                    let sender = *senders.keys().nth(at).unwrap();
                    let pid = senders.remove(&sender).unwrap();
                    sys::kill(pid, libc::SIGKILL);
                    sys::reap(pid);
                    killed += 1;
                }
                side => {
                    let signal = if side == 2 { libc::SIGSTOP } else { libc::SIGCONT };
                    if !senders.is_empty() {
                        let at = dice(senders.len() as u64) as usize;
                        sys::kill(*senders.values().nth(at).unwrap(), signal);
                    }
                }
            }
            for _ in 0..dice(400) {
                let patience = Duration::from_micros(dice(20) * dice(2) * 1000);
                match receiver.recv_timeout(patience) {
                    Ok(bytes) => {
                        let part = |at: usize| bytes[at..at + 8].try_into().unwrap();
                        let sender = u64::from_le_bytes(part(0));
                        let number = next.entry(sender).or_default();
                        message(sender, *number, &mut expected);
                        assert_eq!(bytes, expected, "message {number} of sender {sender}");
                        *number += 1;
                        received += 1;
                    }
                    Err(Error::TimedOut | Error::Closed) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        for pid in senders.into_values() {
            sys::kill(pid, libc::SIGKILL);
            sys::reap(pid);
        }
        while !matches!(receiver.recv(), Err(Error::Closed)) {}
        // All lanes are free.
        let first = receiver.sender().unwrap();
        let others: Vec<_> = (1..8).map(|_| first.try_clone().unwrap()).collect();
        common::figure(&format!("{received} messages of {born} senders, {killed} killed"));
        drop((first, others));
    }
}

//! Which TCP sockets of this machine belong together: `/proc/net/tcp`, where one side of a
//! connection is the other's with the addresses swapped.
//!
//! The tables are those of the caller's network namespace. A socket that they lack is of
//! another, or of another kind, and stays as it was; whoever waits for it waits for somebody
//! elsewhere.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::files;
use crate::wait::Wait;
use crate::world::{Object, World};

/// States of a socket, `include/net/tcp_states.h`.
const ESTABLISHED: u64 = 0x01;
const LISTEN: u64 = 0x0a;

/// A line of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    state: u64,
    /// 0 if nobody has it as a descriptor: it was not accepted yet, or was closed.
    inode: u64,
}

/// Tells of the sockets of `world` that are TCP's, and of their peers, if somebody waits for one.
///
/// The tables are read only then: the kernel looks through its whole hash for them, which takes
/// milliseconds where there is much memory.
pub(super) fn add(world: &mut World) {
    if !is_waited_for(world) {
        return;
    }
    let mut sockets = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        sockets.extend(text.unwrap_or_default().lines().filter_map(Socket::parse));
    }
    world.peers.extend(peers(&sockets));
    let by_inode: HashMap<u64, &Socket> = sockets.iter().map(|one| (one.inode, one)).collect();
    let fds = world.processes.values_mut().flat_map(|one| &mut one.fds);
    for fd in fds.flatten() {
        let Some(inode) = fd.of.socket().filter(|inode| *inode != 0) else {
            continue;
        };
        if let Some(socket) = by_inode.get(&inode) {
            fd.of = match socket.state {
                LISTEN => Object::Listener {
                    inode,
                    at: socket.local,
                },
                _ => Object::Connection {
                    inode,
                    to: socket.remote,
                },
            };
        }
    }
}

/// True if a thread waits for a socket that is not a Unix socket.
fn is_waited_for(world: &World) -> bool {
    let mut processes = world.processes.values();
    processes.any(|process| {
        let is_other = |number: &i32| {
            let inode = process.fd(*number).and_then(|fd| fd.of.socket());
            inode.is_some_and(|inode| !world.peers.contains_key(&inode))
        };
        process.threads.iter().any(|thread| match &thread.wait {
            Wait::Read(fd) | Wait::Write(fd) | Wait::Accept(fd) | Wait::Connect(fd) => is_other(fd),
            Wait::Set { read, write, .. } => read.iter().chain(write).any(is_other),
            _ => false,
        })
    })
}

/// The peer of each socket whose other side is of these. Of a connection that nobody has accepted
/// yet that is the listening socket.
fn peers(sockets: &[Socket]) -> HashMap<u64, u64> {
    // Where one device or table of routes has the addresses of another, a pair is there twice.
    let mut twice = BTreeSet::new();
    let mut by_pair = HashMap::new();
    for socket in sockets.iter().filter(|one| one.state != LISTEN) {
        let pair = (socket.local, socket.remote);
        if by_pair.insert(pair, socket).is_some() {
            twice.insert(pair);
        }
    }
    let mut peers = HashMap::new();
    for socket in sockets.iter().filter(|one| one.inode != 0) {
        let mirrored = (socket.remote, socket.local);
        if socket.state == LISTEN || twice.contains(&mirrored) {
            continue;
        }
        let peer = match by_pair.get(&mirrored) {
            Some(peer) if peer.inode != 0 => Some(peer.inode),
            Some(peer) if peer.state == ESTABLISHED => listener(sockets, peer.local),
            _ => None,
        };
        peers.extend(peer.map(|peer| (socket.inode, peer)));
    }
    peers
}

/// The listening socket to which connections to `local` come, if there is one and no more.
fn listener(sockets: &[Socket], local: SocketAddr) -> Option<u64> {
    let takes = |one: &&Socket| {
        let at = one.local;
        one.state == LISTEN
            && at.port() == local.port()
            && (at.ip() == local.ip() || at.ip().is_unspecified())
    };
    let mut found = sockets.iter().filter(takes);
    let first = found.next()?;
    (found.next().is_none() && first.inode != 0).then_some(first.inode)
}

impl Socket {
    /// Reads `SL: LOCAL REMOTE STATE QUEUES TIMER RETRANSMITS UID TIMEOUT INODE …`.
    fn parse(line: &str) -> Option<Socket> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some(Socket {
            local: address(fields.get(1)?)?,
            remote: address(fields.get(2)?)?,
            state: files::hex(fields.get(3)?.as_bytes())?,
            inode: fields.get(9)?.parse().ok()?,
        })
    }
}

/// `ADDRESS:PORT` in hexadecimal digits, the address in words of 32 bits as they lie in memory.
/// An IPv4 address within IPv6 becomes what it is.
fn address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let word = |index: usize| -> Option<[u8; 4]> {
        let digits = words.get(index * 8..index * 8 + 8)?;
        Some((u32::from_str_radix(digits, 16).ok()?).to_ne_bytes())
    };
    let ip = match words.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(index)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(local: &str, remote: &str, state: u64, inode: u64) -> Socket {
        Socket {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            state,
            inode,
        }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_line_is_read() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt";
        assert_eq!(Socket::parse(head), None);
        let line = "   1: 0100007F:A2C8 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  \
                    1000        0 48213 1 0000000000000000 20 4 30 10 -1";
        let expected = socket("127.0.0.1:41672", "127.0.0.1:8080", ESTABLISHED, 48213);
        assert_eq!(Socket::parse(line), Some(expected));
        let mapped = "0000000000000000FFFF00000100007F:1F90";
        assert_eq!(address(mapped), "127.0.0.1:8080".parse().ok());
        assert_eq!(
            address("00000000000000000000000001000000:0050"),
            "[::1]:80".parse().ok()
        );
        assert_eq!(address("0100007F"), None);
    }

    #[test]
    fn both_sides_belong_together_if_both_are_there() {
        let (client, server) = ("127.0.0.1:4000", "127.0.0.1:80");
        let both = [
            socket(client, server, ESTABLISHED, 1),
            socket(server, client, ESTABLISHED, 2),
        ];
        assert_eq!(peers(&both), HashMap::from([(1, 2), (2, 1)]));
        // To elsewhere.
        assert!(peers(&both[..1]).is_empty());
        // The same addresses once more, by another device.
        let twice = [
            both[0],
            both[1],
            Socket {
                inode: 3,
                ..both[1]
            },
        ];
        assert_eq!(peers(&twice).get(&1), None);
    }

    #[test]
    fn who_was_not_accepted_yet_waits_for_who_listens() {
        let (client, server) = ("127.0.0.1:4000", "127.0.0.1:80");
        let begun = [
            socket(client, server, ESTABLISHED, 1),
            socket(server, client, ESTABLISHED, 0),
            socket("0.0.0.0:80", "0.0.0.0:0", LISTEN, 3),
            socket("0.0.0.0:81", "0.0.0.0:0", LISTEN, 4),
        ];
        assert_eq!(peers(&begun), HashMap::from([(1, 3)]));
        // Two take them by turns (SO_REUSEPORT).
        let mut two = begun.to_vec();
        two.push(Socket {
            inode: 5,
            ..begun[2]
        });
        assert!(peers(&two).is_empty());
        // Its owner has closed it.
        let mut closed = begun;
        closed[1].state = 0x05;
        assert!(peers(&closed).is_empty());
    }
}

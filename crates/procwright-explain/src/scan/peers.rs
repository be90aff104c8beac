//! Which Unix sockets belong together: `sock_diag(7)`, since `/proc/net/unix` has no peers.

use std::collections::HashMap;
use std::io;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`, `linux/sock_diag.h`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `NLMSG_ERROR` and `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `UDIAG_SHOW_PEER`, and the attribute that answers it.
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;
/// `AF_UNIX`.
const UNIX: u8 = 1;
/// Bytes of `struct nlmsghdr`, and of `struct unix_diag_msg`.
const HEADER: usize = 16;
const MESSAGE: usize = 16;

/// The peer of each Unix socket, by inode; 0 of one that has none.
pub(super) fn all() -> io::Result<HashMap<u64, u64>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let mut request = Vec::with_capacity(40);
    // struct nlmsghdr: length, type, flags, sequence, port
    request.extend(40u32.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend([0; 8]);
    // struct unix_diag_req: family, protocol, pad, states, inode, show, cookie
    request.extend([UNIX, 0, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(0u32.to_ne_bytes());
    request.extend(SHOW_PEER.to_ne_bytes());
    request.extend([0xff; 8]);
    send(&socket, &request, SendFlags::empty())?;
    let mut peers = HashMap::new();
    let mut buffer = vec![0u8; 32 * 1024];
    loop {
        let length = recv(&socket, &mut buffer[..], RecvFlags::empty())?.0;
        let mut rest = &buffer[..length];
        if rest.is_empty() {
            return Ok(peers);
        }
        while rest.len() >= HEADER {
            let size = u32_at(rest, 0).unwrap_or(0) as usize;
            if size < HEADER || size > rest.len() {
                break;
            }
            match u16_at(rest, 4) {
                Some(DONE) => return Ok(peers),
                Some(ERROR) => return Err(io::Error::other("sock_diag refuses")),
                _ => {
                    if let Some((own, peer)) = pair(&rest[HEADER..size]) {
                        peers.insert(own, peer.unwrap_or(0));
                    }
                }
            }
            rest = &rest[size.next_multiple_of(4).min(rest.len())..];
        }
    }
}

/// The socket of a `struct unix_diag_msg`, and its peer from the attributes behind it.
fn pair(message: &[u8]) -> Option<(u64, Option<u64>)> {
    let own = u64::from(u32_at(message, 4)?);
    Some((own, peer(message.get(MESSAGE..)?)))
}

fn peer(mut attributes: &[u8]) -> Option<u64> {
    while attributes.len() >= 8 {
        let size = usize::from(u16_at(attributes, 0)?);
        if u16_at(attributes, 2)? == PEER {
            return Some(u64::from(u32_at(attributes, 4)?));
        }
        attributes = attributes.get(size.max(4).next_multiple_of(4)..)?;
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

//! Linux: inotify.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

pub(super) fn watch(directory: &OwnedFd) -> io::Result<OwnedFd> {
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let what = WatchFlags::CREATE
        | WatchFlags::MODIFY
        | WatchFlags::DELETE
        | WatchFlags::MOVE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF;
    // The descriptor is watched, since the path may lead to another directory by now.
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    inotify::add_watch(&watch, path, what)?;
    Ok(watch)
}

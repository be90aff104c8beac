//! The receiver's word, by which senders see that it lives.

use std::io;
use std::sync::Arc;

use crate::error::Error;
use crate::format::{LIVENESS, SECTION};
use crate::shm::{LivenessWord, QueueFile, ReceiverPage, section_of};
use procwright_liveness::HolderId;
use procwright_os::robust::PlacedWord;
use procwright_os::unix_socket::SocketName;

/// Sign that the receiver is there, until it is dropped.
#[doc(alias = "robust futex")]
#[doc(alias = "set_robust_list")]
#[derive(Debug)]
pub(super) struct ReceiverToken {
    queue: Arc<QueueFile>,
    word: Option<PlacedWord>,
    page: ReceiverPage,
}

impl ReceiverToken {
    /// Says that this process receives from now on, and at which sockets it listens. The
    /// caller has the receiver's lock, so no other process does this.
    ///
    /// # Errors
    /// In a fork; when there is no memory left.
    pub(super) fn hold(
        queue: &Arc<QueueFile>,
        name: SocketName,
        door: Option<u32>,
    ) -> Result<ReceiverToken, Error> {
        let epoch = ReceiverPage::next_epoch(ReceiverPage::last_epoch(&queue.receivers));
        let mut life = ReceiverToken {
            queue: Arc::clone(queue),
            word: None,
            page: ReceiverPage {
                epoch,
                word: None,
                holder: HolderId::ourselves(),
                is_closed: false,
                name,
                door,
            },
        };
        life.hold_word(epoch)?;
        life.page.write(&queue.receivers);
        Ok(life)
    }

    /// Takes a new word if the thread that held the last one has ended. To be called now
    /// and then.
    #[inline]
    pub(super) fn renew_if_marked(&mut self) {
        if self.is_marked() {
            self.renew();
        }
    }

    /// Returns whether the kernel has marked the word. One load.
    #[inline]
    pub(super) fn is_marked(&self) -> bool {
        self.word.as_ref().is_some_and(PlacedWord::has_died)
    }

    #[cold]
    fn renew(&mut self) {
        let old = self.word.take();
        // Senders without a word ask the link.
        let epoch = ReceiverPage::next_epoch(self.page.epoch);
        let _ = self.hold_word(epoch);
        self.page.epoch = epoch;
        self.page.write(&self.queue.receivers);
        // The old word is freed last: a sender that looks at it then finds the new one.
        drop(old);
    }

    /// Takes the word of this epoch, or none where the kernel marks none.
    fn hold_word(&mut self, epoch: u64) -> io::Result<()> {
        let at = LIVENESS + section_of(epoch) * SECTION;
        let file = self.queue.file()?;
        self.page.word = None;
        self.word = match PlacedWord::hold(file, at) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => None,
            held => held?,
        };
        self.page.word = self.word.as_ref().map(|word| LivenessWord {
            at: at + u64::from(word.place()),
            value: word.value(),
        });
        Ok(())
    }
}

impl Drop for ReceiverToken {
    fn drop(&mut self) {
        if self.queue.is_here() {
            // The page comes before the word, which sends its readers to the page.
            ReceiverPage::close(&self.queue.receivers);
        }
    }
}

//! Offsets that depend on the number of lanes and the sizes of their blocks.

use super::layout::{CLAIM_STATES, LINE, LINES, MAX_LANES, SECTION};

/// The shape of a queue, from which every offset follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(super) lanes: u32,
    /// Size of the first block as a power of 2. Each next block is twice as large.
    pub(super) first: u32,
    pub(super) blocks: u32,
    /// Number of blocks whose memory stays with a lane while it has a sender; of the larger
    /// ones the receiver gives back what it has read.
    pub(super) kept: u32,
}

impl Geometry {
    /// A shape, or none if no queue can have it.
    pub(crate) fn new(lanes: u32, first: u32, blocks: u32, kept: u32) -> Option<Geometry> {
        let has_lanes = (1..=MAX_LANES).contains(&lanes);
        // Blocks have a page to a gibibyte, the largest that the format has for a message.
        let has_blocks = first >= 12 && blocks >= 1 && first.checked_add(blocks)? <= 31;
        let keeps_some = (1..=blocks).contains(&kept);
        (has_lanes && has_blocks && keeps_some).then_some(Geometry {
            lanes,
            first,
            blocks,
            kept,
        })
    }

    /// Blocks so small that a model can go through all that may happen to them.
    #[cfg(test)]
    pub(crate) fn tiny(first: u32, blocks: u32, kept: u32) -> Geometry {
        Geometry {
            lanes: 1,
            first,
            blocks,
            kept,
        }
    }

    /// Returns whether the memory of a block stays with the lane while it has a sender.
    pub(crate) fn keeps(&self, block: u32) -> bool {
        block < self.kept
    }

    /// Memory is given back in multiples of this, at multiples of it: whole pages.
    pub(crate) fn grain(&self) -> u64 {
        SECTION.min(self.size(self.kept - 1))
    }

    pub(crate) fn lanes(&self) -> u32 {
        self.lanes
    }

    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Size of a block.
    pub(crate) fn size(&self, block: u32) -> u64 {
        1 << (self.first + block)
    }

    /// Offset of a block in the window.
    pub(crate) fn start(&self, block: u32) -> u64 {
        self.size(block) - self.size(0)
    }

    /// Size of all blocks of a lane.
    pub(crate) fn window(&self) -> u64 {
        self.start(self.blocks)
    }

    /// Offset of a lane's line in the file.
    pub(crate) fn line(&self, lane: u32) -> u64 {
        LINES + u64::from(lane) * LINE
    }

    /// Offset of the region that all processes write to. The receiver alone writes to what
    /// lies before it.
    pub(crate) fn shared(&self) -> u64 {
        (LINES + u64::from(self.lanes) * LINE).next_multiple_of(SECTION)
    }

    /// Offset of a lane's claim state in the file.
    pub(crate) fn claim_state(&self, lane: u32) -> u64 {
        self.shared() + CLAIM_STATES + u64::from(lane) * 4
    }

    /// Offset of a lane's page in the file. Its window begins a section further on.
    pub(crate) fn lane_page(&self, lane: u32) -> u64 {
        self.shared() + SECTION + u64::from(lane) * self.lane_size()
    }

    /// Size of a lane's page and window.
    pub(crate) fn lane_size(&self) -> u64 {
        SECTION + self.window().next_multiple_of(SECTION)
    }

    pub(crate) fn file_size(&self) -> u64 {
        self.lane_page(self.lanes)
    }
}

//! Rows without a value that keep others on pages of their own. sled rewrites a page of up to 16 rows after ten changes
//! of any of them, and splits a full one in the middle (docs/internals/store-sled.md).

use crate::keys::{END_PADDING, ITERATIONS_PADDING, JOURNAL_PADDING, ROOT_PADDING};

/// Enough that no page reaches over them.
const PAGE: u8 = 16;

/// A page of 17 rows is split into nine and eight. With these, the eight are one row of the journal and
/// all of these: so the next rows of the journal are put onto a page that is nearly empty, and none is
/// written by more than one split. With eight of them or more they would have a page to themselves, and
/// every split would write half of the rows once more than it must.
const END: u8 = 7;

/// The root changes with every commit, and with it all on its page: no programs. Nor do headers share a page with
/// iterations or the journal.
pub(super) fn rows() -> Vec<Vec<u8>> {
    let families = [
        (ROOT_PADDING, PAGE),
        (ITERATIONS_PADDING, PAGE),
        (JOURNAL_PADDING, PAGE),
        (END_PADDING, END),
    ];
    let rows = families.map(|(family, count)| (0..count).map(move |number| vec![family, number]));
    rows.into_iter().flatten().collect()
}

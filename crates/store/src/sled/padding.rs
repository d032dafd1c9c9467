//! Rows without a value that separate other rows into pages of their own. sled rewrites a page of up to 16 rows after
//! ten changes of any of them, and splits a full page in the middle (docs/internals/store-sled.md).

use crate::keys::{END_PADDING, ITERATIONS_PADDING, JOURNAL_PADDING, ROOT_PADDING};

/// Number of padding rows that a page cannot span.
const PAGE: u8 = 16;

/// Number of padding rows after the journal. A page of 17 rows is split into nine and eight. With this number, the
/// eight are one row of the journal and all of this padding. So the next rows of the journal are put onto a nearly
/// empty page, and no row is written by more than one split. With eight padding rows or more, these would have a page
/// of their own, and every split would write half of the rows once more than necessary.
const END: u8 = 7;

/// Returns all padding rows. The root changes with every commit and causes its page to be written, so programs must not
/// be on that page. Headers must not be on a page with iterations or with the journal.
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

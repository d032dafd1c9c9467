//! Padding: rows without a value that separate other rows, so that these are on pages of their own. sled rewrites a
//! page of up to 16 rows after ten changes of any of them, and splits a full page in the middle
//! (docs/internals/store-sled.md).

use crate::keys::{END_PADDING, ITERATIONS_PADDING, JOURNAL_PADDING, ROOT_PADDING};

/// Number of padding rows at each place. A page cannot have all of these and also rows before and after them.
const PAGE: u8 = 16;

/// Number of padding rows after the journal. sled splits a page of 17 rows into nine and eight. With this number, the
/// eight are the journal's last row and all of this padding. So the next rows of the journal are put onto a nearly
/// empty page, and no row is written by more than one split.
/// With eight or more padding rows, the padding would have a page of its own, and every split would write half of the
/// rows once more than necessary.
const END: u8 = 7;

/// Returns all padding rows. The root changes with every commit, so its page is written with every commit, and programs
/// must not be on that page. Headers must not be on a page with iterations or with the journal.
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

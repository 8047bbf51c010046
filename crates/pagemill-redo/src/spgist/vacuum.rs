//! Cleanup of SP-GiST indexes.
//!
//! Sources: `spgRedoVacuumLeaf`, `spgRedoVacuumRoot` and `spgRedoVacuumRedirect` in
//! `src/backend/access/spgist/spgxlog.c`, `src/include/access/spgxlog.h`, PostgreSQL 14 to 18.

use pagemill_format::{BlockBytes, PgVersion, Result};

use super::moves::State;
use super::tuples::{DEAD, DeadTuple, PLACEHOLDER, SpGistPage};
use crate::change::Change;
use crate::index_page::numbers;

/// Chains of a page lose tuples. One that loses all leaves a dead tuple; one that loses its first tuple has the next
/// one that is left moved to that number.
pub(super) fn leaf(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let counts = numbers(&mut main, 4)?;
    State::read(&mut main)?;
    let [dead, placeholders, moved, chained] = counts[..] else {
        return Err(change.corrupt("four counts are wanted"));
    };
    let mut list = |count: u16| numbers(&mut main, usize::from(count));
    let (dead, placeholders) = (list(dead)?, list(placeholders)?);
    let (from, to) = (list(moved)?, list(moved)?);
    let (chained, next) = (list(chained)?, list(chained)?);
    let mut page = SpGistPage::open(page)?;
    replace_by(&mut page, &dead, DEAD)?;
    replace_by(&mut page, &placeholders, PLACEHOLDER)?;
    for (from, to) in from.iter().zip(&to) {
        page.exchange(*from, *to)?;
    }
    // What lay at the target goes, under the number the moved tuple had.
    replace_by(&mut page, &from, PLACEHOLDER)?;
    chained.iter().zip(&next).try_for_each(|(number, next)| page.set_next(*number, *next))
}

fn replace_by(page: &mut SpGistPage<'_>, numbers: &[u16], state: u32) -> Result<()> {
    page.replace_all(numbers, DeadTuple::of(state), DeadTuple::of(state))
}

/// A root that is a leaf loses tuples, to which nothing leads.
pub(super) fn root(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let count = main.u16()?;
    main.align(4);
    State::read(&mut main)?;
    let deleted = numbers(&mut main, usize::from(count))?;
    SpGistPage::open(page)?.delete_all(&deleted)
}

/// Redirections that no scan can follow any more become placeholders, and placeholders at the end go.
pub(super) fn redirections(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (count, first_placeholder) = (main.u16()?, main.u16()?);
    main.u32()?; // the transaction that standbys wait for
    if change.version() >= PgVersion::V16 {
        main.u16()?; // whether the table is a catalog, and padding
    }
    let forgotten = numbers(&mut main, usize::from(count))?;
    let mut page = SpGistPage::open(page)?;
    for number in forgotten {
        page.forget_redirection(number)?;
    }
    if first_placeholder == 0 { Ok(()) } else { page.cut_placeholders(first_placeholder) }
}

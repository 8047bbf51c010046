//! Publications and subscriptions.
//!
//! Invariant: subscriptions are those of the database that is read.

use super::super::list::{Asked, List, Named};

pub(super) fn publications(asked: &Asked<'_>) -> Result<List, String> {
    List::new("List of publications", "pg_publication p", "1")
        .columns(&[("Name", "p.pubname"), ("Owner", "pg_get_userbyid(p.pubowner)")])
        .columns(&[("All tables", "p.puballtables"), ("Inserts", "p.pubinsert")])
        .columns(&[("Updates", "p.pubupdate"), ("Deletes", "p.pubdelete")])
        .columns(&[("Truncates", "p.pubtruncate"), ("Via root", "p.pubviaroot")])
        .named(asked, &Named { names: &["p.pubname"], ..Named::default() })
}

pub(super) fn subscriptions(asked: &Asked<'_>) -> Result<List, String> {
    let is_newer = asked.major >= 15;
    let is_verbose = asked.is_verbose;
    List::new("List of subscriptions", "pg_subscription s", "1")
        .columns(&[("Name", "s.subname"), ("Owner", "pg_get_userbyid(s.subowner)")])
        .columns(&[("Enabled", "s.subenabled"), ("Publication", "s.subpublications")])
        .columns_if(is_verbose, &[("Binary", "s.subbinary"), ("Streaming", "s.substream")])
        .columns_if(is_verbose && is_newer, &[("Two-phase commit", "s.subtwophasestate")])
        .columns_if(is_verbose && is_newer, &[("Disable on error", "s.subdisableonerr")])
        .columns_if(
            is_verbose,
            &[("Synchronous commit", "s.subsynccommit"), ("Conninfo", "s.subconninfo")],
        )
        .columns_if(is_verbose && is_newer, &[("Skip LSN", "s.subskiplsn")])
        .only("s.subdbid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())")
        .named(asked, &Named { names: &["s.subname"], ..Named::default() })
}

//! Logs made here: which transactions are committed, and which damage of the log is named.
//! A log is some files of a data directory that has nothing else.

use proptest::prelude::*;

use super::synthetic::SyntheticCluster;
use super::*;

const RUNNING: u8 = 0;
const COMMITTED: u8 = 1;
const ABORTED: u8 = 2;
const SUB_COMMITTED: u8 = 3;

/// A page of the commit log with these statuses.
fn statuses(known: &[(u32, u8)]) -> Vec<u8> {
    let mut page = vec![0; BLOCK_SIZE];
    for &(xid, status) in known {
        page[slru::clog_position(TransactionId(xid)).byte] |= status << (xid % 4 * 2);
    }
    page
}

/// A page of `pg_multixact/offsets` that begins with these.
fn offsets(first: &[u32]) -> Vec<u8> {
    let mut page: Vec<u8> = first.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    page.resize(BLOCK_SIZE, 0);
    page
}

/// Puts members, each with its offset, flags and transaction, into a page.
fn members(known: &[(u32, u8, u32)]) -> Vec<u8> {
    let mut page = vec![0; BLOCK_SIZE];
    for &(offset, flags, xid) in known {
        let (group, place) = (slru::multixact_member_position(offset).byte, offset as usize % 4);
        page[group + place] = flags;
        page[group + 4 + place * 4..][..4].copy_from_slice(&xid.to_le_bytes());
    }
    page
}

const KEY_SHARE: u8 = 0;
const SHARE: u8 = 1;
const UPDATE: u8 = 5;

fn committed(log: &mut ClusterLog, xid: u32) -> bool {
    log.committed(TransactionId(xid)).unwrap()
}

fn updater(log: &mut ClusterLog, multi: u32) -> Option<u32> {
    log.updater(MultiXactId(multi)).unwrap().map(|xid| xid.0)
}

#[test]
fn only_what_the_commit_log_calls_committed_is_so() {
    let made = SyntheticCluster::new(1000, 1, 1);
    let known = [(100, COMMITTED), (101, ABORTED), (102, SUB_COMMITTED), (103, RUNNING)];
    made.write("pg_xact/0000", &statuses(&known));
    let mut log = made.log();
    for (xid, status) in known {
        for _ in 0..2 {
            assert_eq!(committed(&mut log, xid), status == COMMITTED, "{xid}");
        }
    }
}

#[test]
fn the_ids_that_no_transaction_has_need_no_commit_log() {
    let mut log = SyntheticCluster::new(1000, 1, 1).log();
    assert!(!committed(&mut log, 0) && committed(&mut log, 1) && committed(&mut log, 2));
    assert_eq!(updater(&mut log, 0), None);
}

#[test]
fn a_status_is_found_in_its_segment_and_page() {
    let made = SyntheticCluster::new(32_768 * 34, 1, 1);
    let pages = [statuses(&[]), statuses(&[(7, COMMITTED)])].concat();
    made.write("pg_xact/0001", &pages);
    let mut log = made.log();
    assert!(committed(&mut log, 32_768 * 33 + 7));
    assert!(!committed(&mut log, 32_768 * 32 + 7));
}

#[test]
fn a_transaction_still_to_come_is_damage_in_a_cluster_that_was_shut_down() {
    let made = SyntheticCluster::new(1000, 1, 1);
    made.write("pg_xact/0000", &statuses(&[(1000, COMMITTED)]));
    let error = made.log().committed(TransactionId(1000)).unwrap_err().to_string();
    assert!(error.contains("1000 was never begun: the next one is 1000"), "{error}");
    assert!(committed(&mut made.killed().log(), 1000));
}

#[test]
fn ids_from_before_the_wrap_round_are_of_the_past() {
    let made = SyntheticCluster::new(10, 1, 1);
    let mut file = vec![0; 31 * BLOCK_SIZE];
    file.extend(statuses(&[(u32::MAX, COMMITTED)]));
    made.write("pg_xact/0FFF", &file);
    assert!(committed(&mut made.log(), u32::MAX));
}

#[test]
fn a_log_that_is_missing_or_ends_early_is_damage_unless_the_server_was_killed() {
    let made = SyntheticCluster::new(100_000, 1, 1);
    let wanted = "which holds the status of transaction 40000";
    let refusal =
        |made: &SyntheticCluster| made.log().committed(TransactionId(40_000)).unwrap_err();
    let missing = refusal(&made).to_string();
    assert!(missing.contains("0000") && missing.contains("missing"), "{missing}");
    assert!(missing.contains(wanted), "{missing}");
    made.write("pg_xact/0000", &statuses(&[(40_000, COMMITTED)])[..BLOCK_SIZE - 1]);
    let short = refusal(&made).to_string();
    assert!(short.contains("block 1: the file ends before") && short.contains(wanted), "{short}");
    assert!(!committed(&mut made.killed().log(), 40_000));
}

#[test]
fn a_transaction_from_before_the_oldest_is_told_so_when_its_status_is_gone() {
    let made = SyntheticCluster::new(2_000_000, 1, 1).truncated_to(1_500_000);
    let says = ["pg_xact/0000", "missing", "40000 is older than 1500000, the oldest"];
    let refusal =
        |made: &SyntheticCluster| made.log().committed(TransactionId(40_000)).unwrap_err();
    let told = refusal(&made).to_string();
    assert!(says.iter().all(|part| told.contains(part)), "{told}");
    // What a server kept although it need not have still tells.
    let pages = [statuses(&[]), statuses(&[(40_000, COMMITTED)])].concat();
    made.write("pg_xact/0000", &pages);
    assert!(committed(&mut made.log(), 40_000));
    // After a kill too: it is not that the status was never written.
    std::fs::remove_file(made.path("pg_xact/0000")).unwrap();
    let told = refusal(&made.killed()).to_string();
    assert!(says.iter().all(|part| told.contains(part)), "{told}");
}

#[test]
fn what_a_killed_server_wrote_of_a_page_counts() {
    let made = SyntheticCluster::new(1000, 1, 1).killed();
    made.write("pg_xact/0000", &statuses(&[(100, COMMITTED), (500, COMMITTED)])[..100]);
    let mut log = made.log();
    assert!(committed(&mut log, 100) && !committed(&mut log, 500));
}

#[test]
fn the_updater_of_a_multixact_is_found_among_its_lockers() {
    let made = SyntheticCluster::new(1000, 4, 7);
    made.write("pg_multixact/offsets/0000", &offsets(&[0, 1, 4, 6]));
    let known = [(1, SHARE, 50), (2, KEY_SHARE, 51), (3, UPDATE, 52), (4, SHARE, 53)];
    let more = [(5, KEY_SHARE, 54), (6, UPDATE, 55)];
    made.write("pg_multixact/members/0000", &members(&[&known[..], &more].concat()));
    let mut log = made.log();
    assert_eq!(updater(&mut log, 1), Some(52));
    assert_eq!(updater(&mut log, 2), None);
    assert_eq!(updater(&mut log, 3), Some(55));
}

/// Member 0 does not exist: the multixact that wraps round has a place there that nobody owns.
#[test]
fn the_members_of_a_multixact_may_wrap_round() {
    let made = SyntheticCluster::new(1000, 2, 2);
    made.write("pg_multixact/offsets/0000", &offsets(&[0, u32::MAX]));
    made.write("pg_multixact/members/0000", &members(&[(0, UPDATE, 0), (1, UPDATE, 51)]));
    let last = slru::multixact_member_position(u32::MAX);
    let mut file = vec![0; last.page_offset() as usize];
    file.extend(members(&[(u32::MAX, SHARE, 50)]));
    made.write("pg_multixact/members/14078", &file);
    assert_eq!(updater(&mut made.log(), 1), Some(51));
}

#[test]
fn offsets_that_no_multixact_can_have_are_damage() {
    let made = SyntheticCluster::new(1000, 3, 9);
    let refusal = |first: &[u32], multi| {
        made.write("pg_multixact/offsets/0000", &offsets(first));
        made.log().updater(MultiXactId(multi)).unwrap_err().to_string()
    };
    assert!(refusal(&[0, 0, 5], 1).contains("would have the members 0 to 5"));
    assert!(refusal(&[0, 6, 5], 1).contains("would have the members 6 to 5"));
    assert!(refusal(&[0, 1, MOST_MEMBERS + 2], 1).contains("would have the members 1 to"));
    assert!(refusal(&[0, 1, 5, 9], 3).contains("3 was never begun: the next one is 3"));
    assert!(refusal(&[0, 1, 5], 1).contains("which holds the members of multixact 1"));
}

#[test]
fn a_multixact_that_a_killed_server_had_not_written_has_no_updater() {
    let made = SyntheticCluster::new(1000, 9, 9).killed();
    made.write("pg_multixact/offsets/0000", &offsets(&[0, 1, 3, 0, 5]));
    made.write("pg_multixact/members/0000", &members(&[(1, SHARE, 50), (2, UPDATE, 51)]));
    let mut log = made.log();
    assert_eq!(updater(&mut log, 1), Some(51));
    // The second ends nowhere, the third begins nowhere, the thousandth is beyond them all.
    assert_eq!(updater(&mut log, 2), None);
    assert_eq!(updater(&mut log, 3), None);
    assert_eq!(updater(&mut log, 1000), None);
}

#[test]
fn the_members_of_a_multixact_may_go_on_over_pages() {
    let made = SyntheticCluster::new(1000, 2, 4000);
    made.write("pg_multixact/offsets/0000", &offsets(&[0, 1]));
    let file = [members(&[]), members(&[]), members(&[(3300, UPDATE, 77)])].concat();
    made.write("pg_multixact/members/0000", &file);
    let mut log = made.log();
    assert_eq!((updater(&mut log, 1), updater(&mut log, 1)), (Some(77), Some(77)));
}

#[test]
fn a_member_of_unknown_status_is_damage_that_names_the_file() {
    let made = SyntheticCluster::new(1000, 2, 2);
    made.write("pg_multixact/offsets/0000", &offsets(&[0, 1]));
    made.write("pg_multixact/members/0000", &members(&[(1, 9, 50)]));
    let error = made.log().updater(MultiXactId(1)).unwrap_err().to_string();
    assert!(error.contains("pg_multixact/members/0000") && error.contains("status 9"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn logs_of_any_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        ids in prop::collection::vec(0_u32..120, 20),
        next in 0_u32..120, next_offset: u32, killed: bool,
    ) {
        let made = SyntheticCluster::new(next, next, next_offset);
        let made = if killed { made.killed() } else { made };
        let page: Vec<u8> = bytes.iter().copied().chain([0]).cycle().take(BLOCK_SIZE).collect();
        for file in ["pg_xact/0000", "pg_multixact/offsets/0000", "pg_multixact/members/0000"] {
            made.write(file, &page);
        }
        let mut log = made.log();
        for id in ids {
            let _ = log.committed(TransactionId(id));
            let _ = log.updater(MultiXactId(id));
        }
    }
}

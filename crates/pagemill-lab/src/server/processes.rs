//! What the server's processes used of the processors, as the kernel tells it in `/proc` (proc(5)).
//!
//! All processes of a server are children of its first one. Times in user mode and in the kernel come in hundredths of a
//! second, the sum of both in nanoseconds; so a sum is split as the hundredths are. What a child has used that ended meanwhile is
//! in its parent's hundredths. Invariant: what the kernel does not tell is `None`.

use std::time::Duration;

use crate::machine::word;

/// Nanoseconds of a tick of processor time (`USER_HZ` is 100).
const TICK: Duration = Duration::from_millis(10);

/// Two times: in user mode and in the kernel, or on a processor and ready to be.
pub(super) type Times = (Duration, Duration);

/// What a server's processes have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ServerTimes {
    /// In user mode and in the kernel, in hundredths of a second.
    coarse: Times,
    /// Both together, of those that live.
    sum: Duration,
}

impl ServerTimes {
    /// What a process, its children and those that ended have used.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let children = word(format!("/proc/{pid}/task/{pid}/children"))?;
        let own = parse_stat(&word(format!("/proc/{pid}/stat"))?)?;
        let run = |pid: u32| run_and_queued(pid).unwrap_or_default().0;
        let coarse = (own.user + own.ended.0, own.system + own.ended.1);
        let mut times = Self { coarse, sum: run(pid) };
        for child in children.split_whitespace().filter_map(|word| word.parse().ok()) {
            // One that ends just now is not there, and not yet its parent's either: it is counted at the next look.
            let found = word(format!("/proc/{child}/stat")).and_then(|stat| parse_stat(&stat));
            if let Some(found) = found {
                times.coarse = (times.coarse.0 + found.user, times.coarse.1 + found.system);
                times.sum += run(child);
            }
        }
        Some(times)
    }

    /// In user mode and in the kernel, since then.
    pub(super) fn since(self, then: Self) -> Times {
        let coarse = since(self.coarse, then.coarse);
        let (hundredths, sum) = (coarse.0 + coarse.1, self.sum.saturating_sub(then.sum));
        // Where there is no sum, or much of it ended, the hundredths say more.
        if sum + 2 * TICK < hundredths {
            return coarse;
        }
        let part = if hundredths.is_zero() { 1.0 } else { coarse.0.div_duration_f64(hundredths) };
        let user = sum.mul_f64(part);
        (user, sum.saturating_sub(user))
    }
}

/// How long a process was on a processor, and how long it was ready to be on one.
pub(super) fn run_and_queued(pid: u32) -> Option<Times> {
    let text = word(format!("/proc/{pid}/schedstat"))?;
    let mut numbers = text.split(' ').map_while(|word| word.parse().ok());
    let (run, queued) = (numbers.next()?, numbers.next()?);
    Some((Duration::from_nanos(run), Duration::from_nanos(queued)))
}

/// What was added since.
pub(super) fn since(now: Times, then: Times) -> Times {
    (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1))
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    user: Duration,
    system: Duration,
    /// Of children that ended and were waited for.
    ended: Times,
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name may have blanks and brackets in it.
    let (_, fields) = text.rsplit_once(')')?;
    let ticks: Vec<u32> =
        fields.split_whitespace().skip(11).map_while(|word| word.parse().ok()).take(4).collect();
    let [user, system, ended_user, ended_system] = ticks[..] else { return None };
    Some(Stat {
        user: TICK * user,
        system: TICK * system,
        ended: (TICK * ended_user, TICK * ended_system),
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn times_come_after_the_name_whatever_that_is() {
        let text = "7 (a ) b) S 1 7 7 0 -1 4194560 5 6 7 8 100 20 300 40 20 0 1 0 99 1 2";
        let found = parse_stat(text).unwrap();
        assert_eq!(
            (found.user, found.system),
            (Duration::from_secs(1), Duration::from_millis(200))
        );
        assert_eq!(found.ended, (Duration::from_secs(3), Duration::from_millis(400)));
        assert_eq!(parse_stat("7 (a) S 1"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_process_that_computes_is_seen_and_one_that_is_gone_is_not() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        let mut child = command.spawn().unwrap();
        let begin = std::time::Instant::now();
        let used = |pid| {
            let (user, system) = ServerTimes::of(pid)?.since(ServerTimes::default());
            Some(user + system)
        };
        while used(child.id()).is_some_and(|used| used < TICK * 2)
            && begin.elapsed() < Duration::from_secs(20)
        {
            std::thread::sleep(TICK);
        }
        let (seen, pid) = (used(child.id()), child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen.is_none_or(|used| used >= TICK * 2), "{seen:?}");
        assert_eq!(ServerTimes::of(pid), None);
        assert_eq!(run_and_queued(pid), None);
    }

    #[test]
    fn a_sum_is_split_as_the_hundredths_are_and_they_count_where_it_is_not_told() {
        let (zero, ms) = (ServerTimes::default(), Duration::from_millis);
        let times = ServerTimes { coarse: (ms(30), ms(10)), sum: ms(44) };
        assert_eq!(times.since(zero), (ms(33), ms(11)));
        assert_eq!(ServerTimes { sum: ms(0), ..times }.since(zero), (ms(30), ms(10)));
        let little = ServerTimes { coarse: (ms(0), ms(0)), sum: ms(4) };
        assert_eq!(little.since(zero), (ms(4), ms(0)));
    }
}

//! `\if`, `\elif`, `\else`, `\endif`: which lines are done.
//!
//! Invariant: what is left out is cut into statements and commands all the same, and nothing of it is done.
//!
//! Source: `src/bin/psql/command.c`, `src/fe_utils/conditional.c`, PostgreSQL 15.

/// One `\if` that has not ended.
#[derive(Debug, Clone, Copy)]
struct Branch {
    /// The lines here are done.
    is_active: bool,
    /// A part was done, or all of it is left out: no other part is done.
    is_decided: bool,
    /// Its `\else` has come.
    is_last: bool,
}

/// All that have not ended, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Branches(Vec<Branch>);

impl Branches {
    /// Whether what comes is done.
    pub(super) fn is_active(&self) -> bool {
        self.0.last().is_none_or(|branch| branch.is_active)
    }

    /// Whether the condition of `\elif` matters.
    pub(super) fn asks_again(&self) -> bool {
        self.0.last().is_some_and(|branch| !branch.is_decided && !branch.is_last)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `\if`, whose condition is not looked at where it is left out itself.
    pub(super) fn begin(&mut self, holds: bool) {
        let is_active = self.is_active() && holds;
        let is_decided = is_active || !self.is_active();
        self.0.push(Branch { is_active, is_decided, is_last: false });
    }

    /// `\elif`.
    ///
    /// # Errors
    /// Where none can be.
    pub(super) fn other(&mut self, holds: bool) -> Result<(), &'static str> {
        let branch = self.0.last_mut().ok_or("\\elif: no matching \\if")?;
        if branch.is_last {
            return Err("\\elif: cannot occur after \\else");
        }
        branch.is_active = !branch.is_decided && holds;
        branch.is_decided |= branch.is_active;
        Ok(())
    }

    /// `\else`.
    ///
    /// # Errors
    /// Where none can be.
    pub(super) fn last(&mut self) -> Result<(), &'static str> {
        let branch = self.0.last_mut().ok_or("\\else: no matching \\if")?;
        if branch.is_last {
            return Err("\\else: cannot occur after \\else");
        }
        *branch = Branch { is_active: !branch.is_decided, is_decided: true, is_last: true };
        Ok(())
    }

    /// `\endif`.
    ///
    /// # Errors
    /// Where none can be.
    pub(super) fn end(&mut self) -> Result<(), &'static str> {
        self.0.pop().map(|_| ()).ok_or("\\endif: no matching \\if")
    }
}

#[cfg(test)]
mod tests {
    use super::Branches;

    #[test]
    fn one_part_is_done_at_most() {
        let mut branches = Branches::default();
        branches.begin(false);
        assert!(!branches.is_active() && branches.asks_again());
        branches.other(true).unwrap();
        assert!(branches.is_active());
        branches.other(true).unwrap();
        assert!(!branches.is_active() && !branches.asks_again());
        branches.last().unwrap();
        assert!(!branches.is_active());
        assert!(branches.other(true).is_err() && branches.last().is_err());
        branches.end().unwrap();
        assert!(branches.is_active() && branches.end().is_err());
    }

    #[test]
    fn nothing_is_done_inside_of_what_is_left_out() {
        let mut branches = Branches::default();
        branches.begin(false);
        branches.begin(true);
        branches.last().unwrap();
        assert!(!branches.is_active());
        branches.end().unwrap();
        branches.last().unwrap();
        assert!(branches.is_active());
    }
}

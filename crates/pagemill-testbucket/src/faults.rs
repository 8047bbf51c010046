//! What may go wrong with a request: [`Fault`], and with which.
//!
//! Invariant: a fault strikes as often as it was asked to, the first requests that it fits.

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The server refuses, with a status and one of S3's codes.
    Refusal(u16, &'static str),
    /// The answer breaks off after that many bytes.
    Cut(u64),
    /// The answer is of a range that is shorter by one byte, and says so.
    Short,
    /// The connection is closed before there is an answer.
    Dropped,
    /// Nothing happens for so many milliseconds.
    Silence(u64),
    /// Before the answer, the file is replaced by one that has other bytes.
    Replaced,
}

/// Which requests a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// All of them.
    All,
    /// Those that list.
    Lists,
    /// Those for contents.
    Gets,
}

/// A fault that waits for its requests.
#[derive(Debug)]
pub(crate) struct Armed {
    pub(crate) fault: Fault,
    pub(crate) requests: Requests,
    /// What the address of the request ends with.
    pub(crate) suffix: String,
    /// How often it strikes; all the time for `None`.
    pub(crate) left: Option<usize>,
}

impl Armed {
    /// Takes note of a request; true when it is struck.
    pub(crate) fn strikes(&mut self, path: &str, is_list: bool) -> bool {
        let fits = match self.requests {
            Requests::All => true,
            Requests::Lists => is_list,
            Requests::Gets => !is_list,
        };
        if !fits || !path.ends_with(&self.suffix) || self.left == Some(0) {
            return false;
        }
        self.left = self.left.map(|left| left - 1);
        true
    }
}

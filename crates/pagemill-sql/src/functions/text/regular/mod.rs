//! PostgreSQL's advanced regular expressions, as far as another library's mean the same.
//!
//! A pattern is read into a tree here ([`syntax`]); what has no meaning that is known to be the same is refused.
//! Patterns that look around or refer to their groups are walked by an own search ([`walk`]). Whether there is a match does not depend on which is preferred.
//! Where the match is does: the leftmost one begins where any of the library's leftmost does, and it is the longest from there, or the
//! shortest, as the first of its quantifiers says ([`parts`]), which an automaton of all matches finds ([`ends`]). What its groups have
//! taken is told by taking the match apart as the server does ([`dissected`]).
//!
//! Letters, digits and spaces beyond ASCII are the collation's matter: from the first text with any on a pattern speaks of all that
//! are some in its locale, if that is known to be the server's, and else only ASCII texts are searched for them.

//!
//! Source: `src/backend/regex/regc_lex.c`, `regcomp.c`, `regexec.c`, PostgreSQL 14 to 18.

mod alphabet;
mod calls;
mod dissected;
mod ends;
mod options;
mod parts;
mod search;
mod separated;
mod set;
mod similar;
mod syntax;
mod walk;
mod words;

pub(crate) use alphabet::Alphabet;
pub(super) use calls::find;
pub(crate) use options::Options;
pub(crate) use search::Pattern;

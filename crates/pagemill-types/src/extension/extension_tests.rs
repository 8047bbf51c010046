//! What tests of extensions' functions share: letters of Unicode, and calls by symbol.
//!
//! Invariant: letters are told as the standard library tells them, which is what `C.UTF-8` of the GNU C library says of usual ones.

use super::call::{Argument, CallError, ExtensionFunction, Letters, Value};

/// Letters as Unicode has them.
pub(super) struct UnicodeLetters;

impl Letters for UnicodeLetters {
    fn major(&self) -> u32 {
        17
    }

    fn lower(&self, text: &str) -> String {
        text.to_lowercase()
    }

    fn is_alphanumeric(&self, character: char) -> bool {
        character.is_alphanumeric()
    }
}

/// What the function of this symbol gives.
pub(super) fn called(
    functions: &[ExtensionFunction],
    symbol: &str,
    arguments: &[Argument<'_>],
) -> Result<Value, CallError> {
    let function = functions.iter().find(|one| one.symbol == symbol);
    (function.unwrap().call)(&UnicodeLetters, arguments)
}

/// The same of a function in one of the libraries.
pub(super) fn called_in(
    library: &str,
    symbol: &str,
    arguments: &[Argument<'_>],
) -> Result<Value, CallError> {
    let function = super::function(library.as_bytes(), symbol.as_bytes()).unwrap();
    (function.call)(&UnicodeLetters, arguments)
}

//! The account a test server runs under, made where it is missing.
//!
//! PostgreSQL refuses to start as root, and tests in containers usually are root. The server is then started under another
//! account; its files stay readable for root. An ordinary user simply runs the server itself.

use std::process::{Command, Stdio};

use anyhow::Result;
use pagemill_server::Account;

/// The account that is made where `postgres` is missing.
const MADE: &str = "pagemill-test";

/// The account for servers started by this process.
pub(crate) fn for_server() -> Result<Account> {
    if let Ok(account) = Account::for_server(&["postgres", MADE]) {
        return Ok(account);
    }
    // `nobody` is the fallback, so a failure is not an error yet.
    let _ = Command::new("useradd")
        .args(["--system", "--no-create-home", "--user-group", MADE])
        .stderr(Stdio::null())
        .status();
    Ok(Account::for_server(&["postgres", MADE, "nobody"])?)
}

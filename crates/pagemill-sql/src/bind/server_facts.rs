//! Calls that ask for the session and its server: `pg_backend_pid()`, `inet_client_addr()`, `pg_stat_get_activity()` and their kin.
//!
//! Each is another value in another session, so that it stands in no plan that is kept.
//!
//! Source: `src/backend/utils/adt/pgstatfuncs.c`, `network.c`, `pg_postmaster_start_time` in `timestamp.c`, PostgreSQL 14 to 18.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use arrow::datatypes::DataType;
use datafusion::prelude::lit;
use pagemill_types::builtin::oid;
use sqlparser::ast::Ident;

use super::Binder;
use crate::catalog::FunctionRow;
use crate::coerce::{constant, null_of};
use crate::error::{Result, unsupported};
use crate::scan::micros_of;
use crate::session::{ServerFacts, SessionFacts};
use crate::typed::Typed;
use crate::types::PgType;

impl Binder<'_> {
    /// What a call gives that asks for the session or its server; `None` for any other.
    pub(super) fn server_fact(&self, function: &FunctionRow) -> Result<Option<Typed>> {
        let of: fn(&ServerFacts) -> Fact = match &*function.key {
            "pg_backend_pid" => |facts| Fact::Number(Some(facts.process)),
            "inet_client_addr" => |facts| Fact::Address(facts.client),
            "inet_client_port" => |facts| Fact::Number(port(facts.client)),
            "inet_server_addr" => |facts| Fact::Address(facts.server),
            "inet_server_port" => |facts| Fact::Number(port(facts.server)),
            "pg_postmaster_start_time" => |facts| Fact::Moment(facts.started),
            "pg_conf_load_time" => |facts| Fact::Moment(facts.loaded),
            _ => return Ok(None),
        };
        self.catalog.check_function(function)?;
        if self.parameters.are_generic() {
            return unsupported("a fact of a session in a generic plan");
        }
        let Some(facts) = self.server else {
            return unsupported(format!("{} where there is no server", function.name));
        };
        let ty = PgType::new(function.result);
        Ok(Some(match of(facts) {
            Fact::Number(Some(number)) => Typed::new(lit(number), ty, DataType::Int32),
            Fact::Moment(moment) => Typed::new(lit(micros_of(moment)), ty, DataType::Int64),
            Fact::Address(Some(address)) => {
                constant(&self.catalog, ty, &address.ip().to_canonical().to_string())?
            }
            Fact::Number(None) | Fact::Address(None) => null_of(&self.catalog, ty)?,
        }))
    }

    /// Whether a name is the key word `SYSTEM_USER`, which 16 brought.
    pub(super) fn is_system_user(&self, name: &Ident) -> bool {
        name.quote_style.is_none()
            && name.value.eq_ignore_ascii_case("system_user")
            && self.catalog.database().cluster().version().major() >= 16
    }

    /// How who asks has proved who that is, and as whom; NULL where nobody had to, as before files.
    pub(super) fn system_user(&self) -> Result<Typed> {
        if self.parameters.are_generic() {
            return unsupported("a fact of a session in a generic plan");
        }
        let ty = PgType::new(oid::TEXT);
        match self.server.and_then(|facts| facts.identity.as_deref()) {
            Some(identity) => constant(&self.catalog, ty, identity),
            None => null_of(&self.catalog, ty),
        }
    }

    /// All sessions of the server, as they stand now.
    pub(super) fn sessions(&self) -> Result<Arc<[SessionFacts]>> {
        if self.parameters.are_generic() {
            return unsupported("the sessions of a server in a generic plan");
        }
        match self.server {
            Some(facts) => Ok((facts.sessions.0)().into()),
            None => unsupported("pg_stat_get_activity where there is no server"),
        }
    }
}

enum Fact {
    Number(Option<i32>),
    Moment(SystemTime),
    Address(Option<SocketAddr>),
}

fn port(address: Option<SocketAddr>) -> Option<i32> {
    address.map(|address| i32::from(address.port()))
}

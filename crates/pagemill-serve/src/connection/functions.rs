//! Functions that are called by their OIDs, as libpq calls those of large objects: they can be opened, read and left.
//!
//! Invariant: a descriptor lives as long as its transaction.
//!
//! Source: `src/backend/tcop/fastpath.c`, `src/backend/libpq/be-fsstubs.c`, PostgreSQL 18; OIDs from `pg_proc.dat`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int32Type;
use pagemill_engine::Progress;
use pagemill_sql::session::Session;
use pagemill_sql::{SqlState, StatementError};

use super::Connection;
use super::large_object::{LargeObject, PAGES_AT_ONCE, Page};
use crate::error::{PROTOCOL_VIOLATION, Result};
use crate::protocol::{FunctionCall, TransactionStatus};
use crate::served_cluster::check_unchanged;

/// `INV_WRITE`, PostgreSQL's `src/include/libpq/libpq-fs.h`.
const TO_WRITE: i32 = 0x20000;

/// Bytes that a client may ask for at once, as they are gathered in memory.
const MOST_READ: i32 = 64 << 20;

/// The large objects that are open, by their descriptors.
#[derive(Default)]
pub(super) struct OpenObjects {
    open: HashMap<i32, LargeObject>,
}

impl OpenObjects {
    /// The end of a transaction.
    pub(super) fn close_all(&mut self) {
        self.open.clear();
    }

    fn get(&mut self, descriptor: i32) -> Told<&mut LargeObject> {
        let missing = || {
            let message = format!("invalid large-object descriptor: {descriptor}");
            StatementError::new(SqlState::UNDEFINED_OBJECT, message)
        };
        self.open.get_mut(&descriptor).ok_or_else(missing)
    }

    /// Keeps an object under the lowest number that is free.
    fn keep(&mut self, object: LargeObject) -> i32 {
        let free = (0..).find(|number| !self.open.contains_key(number));
        let free = free.expect("fewer objects than numbers are open"); // infallible: each takes memory
        self.open.insert(free, object);
        free
    }
}

type Told<T> = Result<T, StatementError>;

/// The arguments of a call, in binary form.
struct Arguments<'m>(&'m [Option<Vec<u8>>]);

impl Arguments<'_> {
    fn bytes<const N: usize>(&self, place: usize) -> Told<[u8; N]> {
        let bytes = self.0.get(place).and_then(Option::as_deref).unwrap_or_default();
        bytes.try_into().map_err(|_| {
            let (state, message) = match bytes.len() < N {
                true => (PROTOCOL_VIOLATION, "insufficient data left in message".to_owned()),
                false => {
                    let place = place + 1;
                    let message =
                        format!("incorrect binary data format in function argument {place}");
                    (SqlState("22P03"), message)
                }
            };
            StatementError::new(state, message)
        })
    }

    fn int4(&self, place: usize) -> Told<i32> {
        self.bytes(place).map(i32::from_be_bytes)
    }

    fn int8(&self, place: usize) -> Told<i64> {
        self.bytes(place).map(i64::from_be_bytes)
    }
}

impl Connection {
    /// Answers a call. What follows it needs no `Sync`.
    pub(super) async fn function_call(&mut self, call: &FunctionCall) -> Result<()> {
        let done = match self.status {
            TransactionStatus::Failed => Err(super::aborted()),
            // By the rights that were set before it came.
            _ => match self.follow_settings().await {
                Ok(()) => self.called(call).await?,
                Err(error) => Err(error),
            },
        };
        match done {
            Ok(value) => self.out.message(b'V', |out| {
                out.extend((value.len() as i32).to_be_bytes());
                out.extend(value);
            }),
            Err(error) => self.fail(&error),
        }
        if self.status == TransactionStatus::Idle {
            self.objects.close_all();
        }
        self.out.ready(self.status);
        self.flush().await
    }

    async fn called(&mut self, call: &FunctionCall) -> Result<Told<Vec<u8>>> {
        if !call.is_binary {
            return Ok(Err(StatementError::unsupported("a call of a function with texts")));
        }
        if !self.session().is_superuser() {
            let what = "a call of a function by its OID, for a role that is no superuser,";
            return Ok(Err(StatementError::unsupported(what)));
        }
        let arguments = Arguments(&call.arguments);
        let int4 = |value: i32| value.to_be_bytes().to_vec();
        Ok(match call.function {
            952 => self.open(&arguments).await?.map(int4),
            953 => self.close_object(&arguments).map(int4),
            954 => self.read(&arguments).await?,
            956 => match (arguments.int4(1), arguments.int4(2)) {
                (Ok(by), Ok(from)) => {
                    self.seek(&arguments, by.into(), from).await?.and_then(short).map(int4)
                }
                (Err(error), _) | (_, Err(error)) => Err(error),
            },
            958 => self.tell(&arguments).and_then(short).map(int4),
            3170 => match (arguments.int8(1), arguments.int4(2)) {
                (Ok(by), Ok(from)) => {
                    self.seek(&arguments, by, from).await?.map(|at| at.to_be_bytes().to_vec())
                }
                (Err(error), _) | (_, Err(error)) => Err(error),
            },
            3171 => self.tell(&arguments).map(|at| at.to_be_bytes().to_vec()),
            // lo_creat, lowrite, lo_create, lo_truncate, lo_unlink.
            955 | 957 | 715 | 1004 | 3172 | 964 => {
                let message = "cannot change large objects in a read-only transaction";
                Err(StatementError::new(SqlState::READ_ONLY, message))
            }
            _ => Err(StatementError::unsupported("a call of a function by its OID")),
        })
    }

    async fn open(&mut self, arguments: &Arguments<'_>) -> Result<Told<i32>> {
        let (number, mode) = match (arguments.int4(0), arguments.int4(1)) {
            (Ok(number), Ok(mode)) => (number.cast_unsigned(), mode),
            (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
        };
        if mode & TO_WRITE != 0 {
            let message = "cannot execute lo_open(INV_WRITE) in a read-only transaction";
            return Ok(Err(StatementError::new(SqlState::READ_ONLY, message)));
        }
        let text = format!(
            "select 0, ''::bytea from pg_catalog.pg_largeobject_metadata where oid = {number}"
        );
        Ok(self.pages(text).await?.and_then(|found| match found.is_empty() {
            false => Ok(self.objects.keep(LargeObject::new(number))),
            true => {
                let message = format!("large object {number} does not exist");
                Err(StatementError::new(SqlState::UNDEFINED_OBJECT, message))
            }
        }))
    }

    fn close_object(&mut self, arguments: &Arguments<'_>) -> Told<i32> {
        let descriptor = arguments.int4(0)?;
        self.objects.get(descriptor)?;
        self.objects.open.remove(&descriptor);
        Ok(0)
    }

    fn tell(&mut self, arguments: &Arguments<'_>) -> Told<i64> {
        Ok(self.objects.get(arguments.int4(0)?)?.at())
    }

    async fn read(&mut self, arguments: &Arguments<'_>) -> Result<Told<Vec<u8>>> {
        let (descriptor, length) = match (arguments.int4(0), arguments.int4(1)) {
            (Ok(descriptor), Ok(length)) if length <= MOST_READ => {
                (descriptor, length.max(0) as usize)
            }
            (Ok(_), Ok(_)) => {
                let message = format!("no more than {MOST_READ} bytes are read at once");
                return Ok(Err(StatementError::new(SqlState("54000"), message)));
            }
            (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
        };
        let mut read = Vec::new();
        loop {
            let object = match self.objects.get(descriptor) {
                Ok(object) => object,
                Err(error) => return Ok(Err(error)),
            };
            let Some(from) = object.read(length, &mut read) else { return Ok(Ok(read)) };
            let text = format!(
                "select pageno, data from pg_catalog.pg_largeobject where loid = {} and pageno >= {from} \
                 order by pageno limit {PAGES_AT_ONCE}",
                object.number()
            );
            match self.pages(text).await? {
                Ok(pages) => match self.objects.get(descriptor) {
                    Ok(object) => object.give(pages),
                    Err(error) => return Ok(Err(error)),
                },
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Moves by so many bytes from the beginning, where it is, or the end: `SEEK_SET`, `SEEK_CUR`, `SEEK_END`.
    async fn seek(&mut self, arguments: &Arguments<'_>, by: i64, from: i32) -> Result<Told<i64>> {
        let descriptor = match arguments.int4(0) {
            Ok(descriptor) => descriptor,
            Err(error) => return Ok(Err(error)),
        };
        let (number, at) = match self.objects.get(descriptor) {
            Ok(object) => (object.number(), object.at()),
            Err(error) => return Ok(Err(error)),
        };
        let origin = match from {
            0 => 0,
            1 => at,
            2 => {
                let text = format!(
                    "select pageno, data from pg_catalog.pg_largeobject where loid = {number} \
                     order by pageno desc limit 1"
                );
                match self.pages(text).await? {
                    Ok(pages) => pages.last().map_or(0, Page::end),
                    Err(error) => return Ok(Err(error)),
                }
            }
            other => {
                let message = format!("invalid whence setting: {other}");
                return Ok(Err(StatementError::new(SqlState::INVALID_PARAMETER, message)));
            }
        };
        let target = origin.checked_add(by).filter(|target| *target >= 0);
        Ok(target
            .ok_or_else(|| {
                let message =
                    format!("invalid large object seek target: {}", origin.wrapping_add(by));
                StatementError::new(SqlState::INVALID_PARAMETER, message)
            })
            .and_then(|target| {
                self.objects.get(descriptor)?.move_to(target);
                Ok(target)
            }))
    }

    /// The rows of a query for a number and bytes.
    async fn pages(&mut self, text: String) -> Result<Told<Vec<Page>>> {
        let (session, cancel) = (self.session().clone(), Progress::default());
        let seen = cancel.clone();
        let reading = self.server.compute.spawn(async move {
            check_unchanged(&session)?;
            let found = pages(&session, &text, &seen).await;
            check_unchanged(&session)?;
            found
        });
        self.registration.interrupt.begin(&cancel);
        let deadline = self.deadline();
        let read = self.unless_ended(reading, &cancel, deadline).await;
        self.registration.interrupt.end();
        Ok(read?.and_then(|joined| joined.unwrap_or_else(|_| Err(super::defect()))))
    }
}

async fn pages(session: &Arc<Session>, text: &str, cancel: &Progress) -> Told<Vec<Page>> {
    let told = |error: pagemill_sql::Error| error.report();
    let parsed = Session::parse(text).map_err(told)?;
    let [statement] = &parsed[..] else { unreachable!("one statement was written") };
    let mut rows = session.start(statement, cancel).await.map_err(told)?;
    let mut found = Vec::new();
    while let Some(batch) = rows.next().await.map_err(told)? {
        let numbers = batch.column(0).as_primitive::<Int32Type>();
        let data = batch.column(1).as_binary::<i32>();
        let page = |(number, data): (Option<i32>, Option<&[u8]>)| {
            Some(Page { number: number?, data: data?.to_vec() })
        };
        found.extend(numbers.iter().zip(data).filter_map(page));
    }
    Ok(found)
}

/// A place that fits into an `int4`.
fn short(at: i64) -> Told<i32> {
    i32::try_from(at).map_err(|_| {
        let message = format!("lo_lseek result out of range for large-object descriptor: {at}");
        StatementError::new(SqlState("22003"), message)
    })
}

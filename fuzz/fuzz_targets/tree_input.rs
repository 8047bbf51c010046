//! Any text as a value of every document, and of arrays, rows, ranges and multiranges, as every
//! version reads it.
//!
//! The text that was there before stays.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use pagemill_format::tuple::AttributeLayout;
use pagemill_format::{Oid, PgVersion};
use pagemill_types::builtin::BuiltinType;
use pagemill_types::input::datetime::{DateOrder, DateTimeContext, IntervalStyle, ZoneLookup};
use pagemill_types::input::tree::{
    Canonical, CompositeInput, InputAttribute, InputContext, InputLookups, InputType,
    MultirangeInput, RangeInput, TypeInput, ValueReader,
};
use pagemill_types::input::{Characters, InputError};
use pagemill_types::order::{TextCollation, ValueOrder};
use pagemill_types::output::NameKind;
use pagemill_types::time_zone::Zone;

const BEFORE: &[u8] = b"before ";

struct Nothing;

impl ZoneLookup for Nothing {
    fn zone(&self, _: &str) -> Option<Arc<Zone>> {
        None
    }
}

impl InputLookups for Nothing {
    fn find_name(&mut self, _: NameKind, _: &[u8]) -> Result<Oid, InputError> {
        Err(InputError::new("there is nothing"))
    }

    fn find_role(&mut self, _: &[u8]) -> Result<Option<Oid>, InputError> {
        Ok(Some(Oid(10)))
    }
}

fn context(version: PgVersion) -> InputContext {
    let date_time = DateTimeContext {
        version,
        date_order: DateOrder::Mdy,
        interval_style: IntervalStyle::Postgres,
        session_zone: Arc::new(Zone::gmt()),
        zones: Arc::new(Nothing),
        transaction_start: 0,
    };
    InputContext { version, encoding: 6, unicode_spaces: true, date_time }
}

fn known(oid: u32, len: i16, align: u8, input: TypeInput) -> Arc<InputType> {
    let layout = AttributeLayout { len, align };
    Arc::new(InputType { oid: Oid(oid), layout, delimiter: b',', packable: len < 0, input })
}

fn scalar(oid: u32) -> TypeInput {
    let found = BuiltinType::by_oid(Oid(oid)).expect("a built-in type");
    found.input_in(PgVersion::V17, Characters::Utf8).expect("a type that is read")
}

static INPUTS: LazyLock<Vec<TypeInput>> = LazyLock::new(|| {
    let (int4, numeric) = (known(23, 4, 4, scalar(23)), known(1700, -1, 4, scalar(1700)));
    let range = |subtype: &Arc<InputType>, canonical| {
        let order = ValueOrder::of_type(subtype.oid, &TextCollation::C).unwrap();
        Arc::new(RangeInput { oid: Oid(1), subtype: subtype.clone(), order, canonical })
    };
    let ranges = [range(&int4, Canonical::Int4), range(&numeric, Canonical::None)];
    let attribute = |of: &Arc<InputType>| InputAttribute {
        layout: of.layout,
        typmod: -1,
        packable: of.packable,
        input: Some(of.input.clone()),
    };
    let attributes = vec![attribute(&int4), attribute(&numeric)];
    let row =
        TypeInput::Composite(Arc::new(CompositeInput { oid: Oid(2), version: None, attributes }));
    let rows = TypeInput::Array(known(2, -1, 8, row.clone()));
    let mut inputs = vec![TypeInput::Array(int4), TypeInput::Array(numeric), row, rows];
    for range in ranges {
        let multirange = MultirangeInput { oid: Oid(3), range: range.clone() };
        inputs.extend([TypeInput::Range(range), TypeInput::Multirange(Arc::new(multirange))]);
    }
    let builtin = |one: &BuiltinType| one.input_in(PgVersion::V17, Characters::Utf8);
    inputs.extend(BuiltinType::all().iter().filter_map(builtin));
    inputs
});

fuzz_target!(|text: &[u8]| {
    for context in PgVersion::ALL.map(context) {
        let mut nothing = Nothing;
        let mut reader = ValueReader::new(&mut nothing, &context);
        for input in INPUTS.iter() {
            let mut out = BEFORE.to_vec();
            let _ = reader.read(input, -1, text, &mut out);
            assert!(out.starts_with(BEFORE), "reading changed what was there before");
        }
    }
});

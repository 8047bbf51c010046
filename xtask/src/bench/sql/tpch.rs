//! TPC-H's tables: how they are made, filled and indexed, as a PostgreSQL user would.
//!
//! Rows come from `tpchgen`, which makes those of the benchmark's own generator. Source: TPC Benchmark H, revision 3,
//! clauses 1.4 and 4.2.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

/// A table of the benchmark.
pub(super) struct TpchTable {
    pub(super) name: &'static str,
    /// What stands between the parentheses of CREATE TABLE.
    columns: &'static str,
    key: &'static str,
    /// The columns, or the expression, of an index each.
    indexes: &'static [&'static str],
}

const fn table(
    name: &'static str,
    columns: &'static str,
    key: &'static str,
    indexes: &'static [&'static str],
) -> TpchTable {
    TpchTable { name, columns, key, indexes }
}

/// All of them.
pub(super) const TABLES: [TpchTable; 8] = [
    table(
        "region",
        "r_regionkey int not null, r_name char(25) not null, r_comment varchar(152)",
        "r_regionkey",
        &[],
    ),
    table(
        "nation",
        "n_nationkey int not null, n_name char(25) not null, n_regionkey int not null, n_comment varchar(152)",
        "n_nationkey",
        &["n_regionkey"],
    ),
    table(
        "part",
        "p_partkey int not null, p_name varchar(55) not null, p_mfgr char(25) not null, p_brand char(10) not null, \
         p_type varchar(25) not null, p_size int not null, p_container char(10) not null, \
         p_retailprice numeric(15,2) not null, p_comment varchar(23) not null",
        "p_partkey",
        &[],
    ),
    table(
        "supplier",
        "s_suppkey int not null, s_name char(25) not null, s_address varchar(40) not null, s_nationkey int not null, \
         s_phone char(15) not null, s_acctbal numeric(15,2) not null, s_comment varchar(101) not null",
        "s_suppkey",
        &["s_nationkey"],
    ),
    table(
        "partsupp",
        "ps_partkey int not null, ps_suppkey int not null, ps_availqty int not null, \
         ps_supplycost numeric(15,2) not null, ps_comment varchar(199) not null",
        "ps_partkey, ps_suppkey",
        &["ps_suppkey"],
    ),
    table(
        "customer",
        "c_custkey int not null, c_name varchar(25) not null, c_address varchar(40) not null, \
         c_nationkey int not null, c_phone char(15) not null, c_acctbal numeric(15,2) not null, \
         c_mktsegment char(10) not null, c_comment varchar(117) not null",
        "c_custkey",
        &["c_nationkey", "lower(c_name)"],
    ),
    table(
        "orders",
        "o_orderkey bigint not null, o_custkey int not null, o_orderstatus char(1) not null, \
         o_totalprice numeric(15,2) not null, o_orderdate date not null, o_orderpriority char(15) not null, \
         o_clerk char(15) not null, o_shippriority int not null, o_comment varchar(79) not null",
        "o_orderkey",
        &["o_custkey", "o_orderdate"],
    ),
    table(
        "lineitem",
        "l_orderkey bigint not null, l_partkey int not null, l_suppkey int not null, l_linenumber int not null, \
         l_quantity numeric(15,2) not null, l_extendedprice numeric(15,2) not null, \
         l_discount numeric(15,2) not null, l_tax numeric(15,2) not null, l_returnflag char(1) not null, \
         l_linestatus char(1) not null, l_shipdate date not null, l_commitdate date not null, \
         l_receiptdate date not null, l_shipinstruct char(25) not null, l_shipmode char(10) not null, \
         l_comment varchar(44) not null",
        "l_orderkey, l_linenumber",
        &["l_partkey, l_suppkey", "l_suppkey", "l_shipdate"],
    ),
];

impl TpchTable {
    pub(super) fn create(&self) -> String {
        format!("create table {} ({})", self.name, self.columns)
    }

    /// Its columns as `name:type;…`.
    pub(super) fn types(&self) -> String {
        let columns = self.columns.split(", ").map(|column| {
            let column = column.trim_end_matches(" not null");
            column.replacen(' ', ":", 1)
        });
        columns.collect::<Vec<_>>().join(";")
    }

    /// The statements that make its indexes, once it is full.
    pub(super) fn index(&self) -> Vec<String> {
        let name = self.name;
        let key = format!("alter table {name} add primary key ({})", self.key);
        let indexes =
            self.indexes.iter().map(|columns| format!("create index on {name} ({columns})"));
        std::iter::once(key).chain(indexes).collect()
    }

    /// Writes its rows for `COPY … (delimiter '|')`.
    pub(super) fn write(&self, scale: f64, out: &mut dyn Write) -> io::Result<()> {
        match self.name {
            "region" => lines(RegionGenerator::new(scale, 1, 1).iter(), out),
            "nation" => lines(NationGenerator::new(scale, 1, 1).iter(), out),
            "part" => lines(PartGenerator::new(scale, 1, 1).iter(), out),
            "supplier" => lines(SupplierGenerator::new(scale, 1, 1).iter(), out),
            "partsupp" => lines(PartSuppGenerator::new(scale, 1, 1).iter(), out),
            "customer" => lines(CustomerGenerator::new(scale, 1, 1).iter(), out),
            "orders" => lines(OrderGenerator::new(scale, 1, 1).iter(), out),
            "lineitem" => lines(LineItemGenerator::new(scale, 1, 1).iter(), out),
            other => unreachable!("the benchmark has no table {other}"),
        }
    }
}

/// A line for each row, without the generator's last delimiter.
fn lines(rows: impl Iterator<Item = impl Display>, out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    for row in rows {
        let line = row.to_string();
        let line = line.strip_suffix('|').unwrap_or(&line);
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_a_value_for_each_column() {
        for table in &TABLES {
            let mut text = Vec::new();
            table.write(0.001, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            let columns = table.columns.split(", ").count();
            assert!(!text.is_empty(), "{}", table.name);
            for line in text.lines() {
                assert_eq!(line.split('|').count(), columns, "{}: {line}", table.name);
            }
        }
    }
}

//! Prints the list's statements, one a line: name, tab, SQL. `script/bench-list` measures what this prints.

#[path = "../src/db/inspections/statements.rs"]
#[allow(dead_code, missing_docs)]
mod statements;

fn main() {
    for (name, sql) in statements::LIST_STATEMENTS {
        println!("{name}\t{sql}");
    }
}

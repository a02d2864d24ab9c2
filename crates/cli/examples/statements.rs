//! Prints every SQL statement of the programs, one per line as `name<TAB>SQL`. `script/bench-list` and `script/bench-large`
//! measure them.

// These crates are linked to register their statements.
#[cfg(feature = "inspectors")]
use partner_api_inspector as _;
use partner_api_operator as _;

use partner_api_store::statement::STATEMENTS;

fn main() {
    for statement in STATEMENTS {
        println!("{}\t{}", statement.name(), statement.sql().replace('\n', " "));
    }
}

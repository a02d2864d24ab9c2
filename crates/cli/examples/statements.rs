//! Prints every SQL statement of the programs, one per line as `name<TAB>SQL`. `script/bench-list` and `script/bench-large`
//! measure them.

// These crates are linked to register their statements.
#[cfg(feature = "inspectors")]
use partner_api_inspector as _;
use partner_api_operator as _;

use partner_api_store::statement::STATEMENTS;

fn main() {
    for statement in STATEMENTS {
        // A comment would hide what follows it on the same line.
        let lines = statement
            .sql()
            .lines()
            .map(|line| line.split("-- ").next().unwrap_or_default());
        println!("{}\t{}", statement.name(), lines.collect::<Vec<_>>().join(" "));
    }
}

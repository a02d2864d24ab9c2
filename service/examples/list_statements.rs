//! Prints the list's statements, one a line: name, tab, SQL. `script/bench-list` measures what this prints.

use partner_api::db::statement::STATEMENTS;

fn main() {
    const LIST: &str = "partner_api::db::inspections::statements::";
    for statement in STATEMENTS {
        if let Some(name) = statement.name().strip_prefix(LIST) {
            println!("list_{}\t{}", name.replace("::", "_").to_lowercase(), statement.sql());
        }
    }
}

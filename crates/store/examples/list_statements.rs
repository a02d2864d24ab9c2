//! Prints the list's statements, one a line: name, tab, SQL. `script/bench-list` measures what this prints.

use partner_api_store::statement::STATEMENTS;

fn main() {
    const LIST: &str = "partner_api_store::inspections::";
    for statement in STATEMENTS {
        let name = statement.name().strip_prefix(LIST);
        if let Some(name) = name.map(|name| name.strip_prefix("statements::").unwrap_or(name)) {
            println!("list_{}\t{}", name.replace("::", "_").to_lowercase(), statement.sql());
        }
    }
}

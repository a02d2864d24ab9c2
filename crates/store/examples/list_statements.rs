//! Prints the SQL statements of the report list, one per line as `name<TAB>SQL`. `script/bench-list` measures them.

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

//! Writes a sample report: `cargo run -p report-pdf --example render -- out.pdf`.

#[path = "../tests/render/sample.rs"]
mod sample;

use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "report.pdf".to_owned());
    let start = Instant::now();
    let renderer = report_pdf::Renderer::new();
    let prepared = start.elapsed();
    let report = sample::report(1280);
    for round in 1..=2 {
        let start = Instant::now();
        let pdf = renderer.render(&report)?;
        println!(
            "render {round}: {} ms, {} bytes",
            start.elapsed().as_millis(),
            pdf.len()
        );
        std::fs::write(&path, pdf)?;
    }
    println!("fonts and template: {} ms; written to {path}", prepared.as_millis());
    Ok(())
}

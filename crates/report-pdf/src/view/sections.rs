//! The forms in their sections, except the test line.

use serde::Serialize;

use super::{is_left_out, value};
use crate::layout::{self, Run};
use crate::status::Status;
use crate::{Form, Point, labels};

#[derive(Serialize)]
pub(super) struct Section {
    #[serde(skip)]
    category: String,
    title: String,
    forms: Vec<SectionForm>,
}

#[derive(Serialize)]
struct SectionForm {
    /// The name; empty if it equals the section's title.
    name: String,
    note: String,
    /// Whether any point has a value. Otherwise the table has no column for values.
    has_values: bool,
    points: Vec<SectionPoint>,
    runs: Vec<Run>,
    /// The points that were not inspected, as a sentence; empty if there are none.
    not_inspected: String,
}

#[derive(Serialize)]
struct SectionPoint {
    name: String,
    value: String,
    note: String,
    status: Status,
}

pub(super) fn sections(forms: &[Form]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for form in forms.iter().filter(|form| !form.is_test_line && !is_left_out(form)) {
        let points: Vec<SectionPoint> = form.points.iter().map(section_point).collect();
        let lengths: Vec<Vec<usize>> = points
            .iter()
            .map(|point| vec![point.name.chars().count() + point.note.chars().count()])
            .collect();
        let section = SectionForm {
            name: form.name.clone(),
            note: form.general_note.clone(),
            has_values: form.points.iter().any(|point| point.numeric_value.is_some()),
            runs: layout::runs(&lengths),
            points,
            not_inspected: form.not_inspected_note(),
        };
        match sections
            .iter_mut()
            .find(|section| section.category == form.score_category)
        {
            Some(known) => known.forms.push(section),
            None => sections.push(Section {
                category: form.score_category.clone(),
                title: labels::category(&form.score_category),
                forms: vec![section],
            }),
        }
    }
    sections.iter_mut().for_each(Section::remove_duplicate_headings);
    sections
}

impl Section {
    /// Avoids duplicate headings. The only form of a section gives the section its name, and a first form with the section's name
    /// gets no heading. A later one keeps its heading, because its rows would otherwise be read as those of the form before it.
    fn remove_duplicate_headings(&mut self) {
        if let [form] = self.forms.as_mut_slice() {
            let name = std::mem::take(&mut form.name);
            if !name.trim().is_empty() {
                self.title = name;
            }
        }
        let title = folded(&self.title);
        if let Some(first) = self.forms.first_mut().filter(|form| folded(&form.name) == title) {
            first.name.clear();
        }
    }
}

/// A heading in lower case for comparison, also in Turkish.
fn folded(heading: &str) -> String {
    heading.replace('İ', "i").replace('I', "ı").trim().to_lowercase()
}

fn section_point(point: &Point) -> SectionPoint {
    SectionPoint {
        name: point.name.clone(),
        value: value(point),
        note: point.note.clone(),
        status: Status::new(point),
    }
}

#[cfg(test)]
mod tests {
    use super::super::form;
    use super::*;

    #[test]
    fn no_heading_is_printed_twice() {
        let of = |forms: &[(&str, &str)]| {
            let forms: Vec<Form> = forms
                .iter()
                .map(|(name, category)| form(name, category, Vec::new()))
                .collect();
            let headings = sections(&forms).into_iter().map(|section| {
                let forms = section.forms.into_iter().map(|form| form.name);
                std::iter::once(section.title)
                    .chain(forms)
                    .filter(|text| !text.is_empty())
                    .collect::<Vec<_>>()
            });
            headings.collect::<Vec<_>>()
        };
        assert_eq!(of(&[("Kaporta ve Boya", "BODY")]), [["Kaporta ve Boya"]]);
        assert_eq!(
            of(&[("KAPORTA VE BOYA", "BODY"), ("Cam", "BODY")]),
            [["Kaporta ve boya", "Cam"]]
        );
        assert_eq!(
            of(&[("Motor", "MECHANICAL"), ("Alt Takım", "MECHANICAL")]),
            [["Mekanik", "Motor", "Alt Takım"]]
        );
        assert_eq!(of(&[("", "BODY")]), [["Kaporta ve boya"]]);
        // Without its heading, its rows would be read as those of the form before it.
        assert_eq!(
            of(&[("Cam", "BODY"), ("Kaporta ve Boya", "BODY")]),
            [["Kaporta ve boya", "Cam", "Kaporta ve Boya"]]
        );
    }
}

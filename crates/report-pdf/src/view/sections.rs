//! The forms in their sections, but for the test line.

use serde::Serialize;

use super::status::Status;
use super::value;
use crate::layout::{self, Run};
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
    /// Empty where the section's title says it.
    name: String,
    note: String,
    /// Whether any point has a value: only then is there a column for it.
    has_values: bool,
    points: Vec<SectionPoint>,
    runs: Vec<Run>,
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
    for form in forms.iter().filter(|form| !form.is_test_line) {
        let points: Vec<SectionPoint> = form.points.iter().map(|point| section_point(form, point)).collect();
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
    sections.iter_mut().for_each(Section::entitle);
    sections
}

impl Section {
    /// No heading stands twice: the only form of a section names it, and a form of the section's own name has none.
    fn entitle(&mut self) {
        if let [form] = self.forms.as_mut_slice() {
            let name = std::mem::take(&mut form.name);
            if !name.trim().is_empty() {
                self.title = name;
            }
        }
        let title = folded(&self.title);
        for form in &mut self.forms {
            if folded(&form.name) == title {
                form.name.clear();
            }
        }
    }
}

/// A heading for comparison: letter case does not count, in Turkish either.
fn folded(heading: &str) -> String {
    heading.replace('İ', "i").replace('I', "ı").trim().to_lowercase()
}

fn section_point(form: &Form, point: &Point) -> SectionPoint {
    SectionPoint {
        name: point.name.clone(),
        value: value(form, point),
        note: point.note.clone(),
        status: Status::new(point),
    }
}

#[cfg(test)]
mod tests {
    use super::super::form;
    use super::*;

    #[test]
    fn no_heading_stands_twice() {
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
    }
}

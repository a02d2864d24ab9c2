//! Responses, their headers, error codes and bodies.

use super::{Comparison, Direction};
use crate::Severity;
use crate::document::{Node, Pair, pairs, strings};

impl Comparison {
    /// `is_newly_conditional`: whether requests may now contain a condition, which they could not before.
    pub(super) fn responses(&mut self, base: &Node<'_>, working: &Node<'_>, is_newly_conditional: bool) {
        let (base, working) = (base.get("responses"), working.get("responses"));
        for Pair {
            name: status,
            place,
            was,
            is,
        } in pairs(base.as_ref(), working.as_ref())
        {
            match (was, is) {
                (Some(was), Some(is)) => self.response(&was, &is),
                // Requests that got this status now get a different response than promised.
                (Some(_), None) => self.breaking(place, format!("the status {status} was removed")),
                // Clients distinguish errors by class and code, and handle an unknown code by its status.
                (None, Some(_)) if status.starts_with(['4', '5']) => {
                    self.addition(place, format!("the error status {status} was added"));
                }
                // Only a conditional request gets it.
                (None, Some(_)) if status == "304" && is_newly_conditional => {
                    self.addition(place, "the status 304 was added, for requests with a condition");
                }
                (None, Some(_)) => {
                    self.breaking(
                        place,
                        format!("the status {status} was added: existing clients do not know it"),
                    );
                }
                (None, None) => {}
            }
        }
    }

    fn response(&mut self, base: &Node<'_>, working: &Node<'_>) {
        self.rest(base, working, &["headers", "content", "x-error-codes"]);
        self.error_codes(base, working);
        self.headers(base, working);
        self.content(Direction::Response, base, working);
    }

    fn error_codes(&mut self, base: &Node<'_>, working: &Node<'_>) {
        let (was, is) = (
            strings(base.raw("x-error-codes")),
            strings(working.raw("x-error-codes")),
        );
        let pointer = working.below("x-error-codes");
        for code in was.difference(&is) {
            // Clients depend on it, and requests that got it now get a different response.
            self.breaking(&pointer, format!("the error code `{code}` was removed"));
        }
        for code in is.difference(&was) {
            self.addition(&pointer, format!("the error code `{code}` was added"));
        }
        if was == is && base.raw("x-error-codes") != working.raw("x-error-codes") {
            self.report(Severity::Wording, pointer, "the error codes are in another order");
        }
    }

    fn headers(&mut self, base: &Node<'_>, working: &Node<'_>) {
        let (base, working) = (base.get("headers"), working.get("headers"));
        for Pair { name, place, was, is } in pairs(base.as_ref(), working.as_ref()) {
            match (was, is) {
                (Some(was), Some(is)) => self.header(&was, &is),
                (Some(_), None) => self.breaking(place, format!("the header `{name}` was removed")),
                (None, Some(_)) => self.addition(place, format!("the header `{name}` was added")),
                (None, None) => {}
            }
        }
    }

    fn header(&mut self, base: &Node<'_>, working: &Node<'_>) {
        self.rest(base, working, &["required", "schema", "content"]);
        match (base.is_true("required"), working.is_true("required")) {
            (true, false) => self.breaking(working.below("required"), "the header may be absent now"),
            (false, true) => self.addition(working.below("required"), "the header is always there now"),
            _ => {}
        }
        self.schema_at(Direction::Response, base, working, "schema");
        self.content(Direction::Response, base, working);
    }

    /// Compares the media types of a body, a parameter or a header.
    pub(super) fn content(&mut self, direction: Direction, base: &Node<'_>, working: &Node<'_>) {
        let (base, working) = (base.get("content"), working.get("content"));
        for Pair {
            name: media_type,
            place,
            was,
            is,
        } in pairs(base.as_ref(), working.as_ref())
        {
            self.media_types_differ |= was.is_some() != is.is_some();
            match (was, is) {
                (Some(was), Some(is)) => {
                    self.rest(&was, &is, &["schema"]);
                    self.media_types_differ |= was.raw("schema").is_some() != is.raw("schema").is_some();
                    self.schema_at(direction, &was, &is, "schema");
                }
                (Some(_), None) => self.breaking(place, format!("`{media_type}` was removed")),
                (None, Some(_)) => self.addition(place, format!("`{media_type}` was added")),
                (None, None) => {}
            }
        }
    }
}

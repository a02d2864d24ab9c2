//! What was seen of the answers while a call ran: generated code gives an error of an unreadable answer without its headers.

use std::cell::RefCell;

use reqwest::{Response, StatusCode};

use crate::call::request_id;

tokio::task_local! {
    static SEEN: RefCell<Seen>;
}

/// Of the last answer of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) request_id: Option<String>,
    pub(crate) status: Option<StatusCode>,
}

/// Notes an answer for whoever [`watch`]es the call that it belongs to.
pub(crate) fn note(response: &Response) {
    let seen = Seen {
        request_id: request_id(response.headers()),
        status: Some(response.status()),
    };
    // A call may be sent without being watched.
    let _ = SEEN.try_with(|cell| cell.replace(seen));
}

/// Runs a call; tells what was seen of its answers as well.
pub(crate) async fn watch<F: Future>(call: F) -> (F::Output, Seen) {
    SEEN.scope(RefCell::default(), async {
        let output = call.await;
        let seen = SEEN.try_with(|cell| cell.take()).unwrap_or_default();
        (output, seen)
    })
    .await
}

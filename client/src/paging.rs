//! All pages of the list of inspections as one stream.

use futures::Stream;

use crate::call::Call as _;
use crate::generated::{builder, types};
use crate::problem::Problem;
use crate::retry::{Pause, PauseReason};

/// Returns all reports of `list` with its filters, newest first. The next page is requested when the previous one is
/// consumed, until `page.next_cursor` is missing or `page.has_more` is false.
///
/// Reports that are created during the iteration do not cause repeated or skipped ones. An error ends the stream. If the key's quota is
/// used up, the stream waits for the next window before it requests a page.
///
/// ```no_run
/// # async fn example(client: partner_api_client::Client) -> Result<(), partner_api_client::Problem> {
/// use futures::TryStreamExt;
/// use partner_api_client::{inspections, types::InspectionStatus};
///
/// let archived = client.list_inspections().status(InspectionStatus::Archived);
/// let all: Vec<_> = inspections(archived).try_collect().await?;
/// # Ok(())
/// # }
/// ```
pub fn inspections(
    list: builder::ListInspections<'_>,
) -> impl Stream<Item = Result<types::InspectionListItem, Problem>> {
    inspections_with_reserve(list, 0)
}

/// Like [`inspections`], but leaves `reserve` requests of each window to other users of the key.
pub fn inspections_with_reserve(
    list: builder::ListInspections<'_>,
    reserve: u32,
) -> impl Stream<Item = Result<types::InspectionListItem, Problem>> {
    inspections_with_pauses(list, reserve, |_| {})
}

/// Like [`inspections_with_reserve`], and calls `on_pause` before each pause. It can be the function that
/// [`Connector::on_pause`](crate::Connector::on_pause) takes, which is called for retries.
pub fn inspections_with_pauses(
    list: builder::ListInspections<'_>,
    reserve: u32,
    on_pause: impl Fn(&Pause),
) -> impl Stream<Item = Result<types::InspectionListItem, Problem>> {
    async_stream::try_stream! {
        let mut request = list.clone();
        loop {
            let response = request.send().response().await?;
            let pause = response.rate_limit().and_then(|limit| limit.pause_with_reserve(reserve));
            let page = response.into_inner();
            for report in page.data {
                yield report;
            }
            match page.page.next_cursor {
                Some(cursor) if page.page.has_more => request = list.clone().cursor(cursor),
                _ => break,
            }
            if let Some(duration) = pause {
                on_pause(&Pause { duration, reason: PauseReason::Quota });
                tokio::time::sleep(duration).await;
            }
        }
    }
}

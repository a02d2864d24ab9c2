//! The list of inspections as one stream.

use futures::Stream;

use crate::call::Call as _;
use crate::generated::{builder, types};
use crate::problem::Problem;

/// All reports of a list, from its page to its last one: what `client.list_inspections()` with its filters asks for,
/// newest first. The next page is asked for when the one before is consumed, by `page.next_cursor`, until that is
/// absent or `page.has_more` is false.
///
/// Reports that are created meanwhile never make it repeat or skip one that was there at the beginning. An error ends
/// the stream. Before a page for which the key's quota has nothing left it waits for the next window, rather than be refused.
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
    inspections_leaving(list, 0)
}

/// [`inspections`], which leaves so many requests of each window to whatever else uses the key.
pub fn inspections_leaving(
    list: builder::ListInspections<'_>,
    reserve: u32,
) -> impl Stream<Item = Result<types::InspectionListItem, Problem>> {
    async_stream::try_stream! {
        let mut request = list.clone();
        loop {
            let answer = request.send().answer().await?;
            let pause = answer.rate_limit().and_then(|limit| limit.pause_leaving(reserve));
            let page = answer.into_inner();
            for report in page.data {
                yield report;
            }
            match page.page.next_cursor {
                Some(cursor) if page.page.has_more => request = list.clone().cursor(cursor),
                _ => break,
            }
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
        }
    }
}

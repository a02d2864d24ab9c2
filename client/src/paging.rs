//! The list of inspections as one stream.

use futures::Stream;

use crate::generated::{Error, builder, types};

/// All reports of a list, from its page to its last one: what `client.list_inspections()` with its filters asks for,
/// newest first. The next page is asked for when the one before is consumed, by `page.next_cursor`, until that is
/// absent or `page.has_more` is false.
///
/// Reports that are created meanwhile never make it repeat or skip one that was there at the beginning. An error ends
/// the stream.
///
/// ```no_run
/// # async fn example(client: partner_api_client::Client) -> Result<(), Box<dyn std::error::Error>> {
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
) -> impl Stream<Item = Result<types::InspectionListItem, Error<types::Error>>> {
    async_stream::try_stream! {
        let mut request = list.clone();
        loop {
            let page = request.send().await?.into_inner();
            for report in page.data {
                yield report;
            }
            match page.page.next_cursor {
                Some(cursor) if page.page.has_more => request = list.clone().cursor(cursor),
                _ => break,
            }
        }
    }
}

//! A client of the partner API: generated calls, signing, retries and paging.

package upload

import "gcsup/upload/internal/engine"

// AtRisk bounds the bytes at risk of all uploads that share it: those that must be sent again if the
// process dies now. The bound is ten seconds of the rate at which bytes were committed in the last five, and at least 64
// MiB. It begins with 16 MiB, and grows to 64 MiB with the bytes that are committed. Beyond the bound no file, part or session begins, and what has begun
// continues.
//
//   - A part of a multipart upload, see [ByMultipart], and a small file that is sent in one request, are at risk as
//     a whole, from the begin of the request until its reply. One that is larger than the bound begins if no
//     other one is at risk.
//   - Of a session, what its socket holds is at risk, and 256 KiB. The service keeps the bytes that arrived. Linux
//     tells what a socket holds. On other systems 1 MiB counts for each session.
//
// A request that has begun keeps its bytes while its upload is paused. Uploaders that share an AtRisk should therefore
// share the [RateLimit], too: otherwise one that is paused may keep the others waiting.
//
// The zero value is ready to use. An AtRisk is safe for concurrent use, and must not be copied.
type AtRisk struct{ bound engine.AtRisk }

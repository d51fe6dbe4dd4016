// Package bucket makes the requests for a bucket that are no part of an upload.
//
// The two main calls are [List], which reads one page of the objects, and [ReadConfig],
// which reads the settings that concern new objects. [Notifications] and [Permissions]
// show whether temporary objects would disturb others, and could be deleted.
//
// Each function makes one exchange. None of them
// loops, waits or retries. Each returns a [session.Reply], even if no reply arrived.
// Package decide has the table that decides whether a request is repeated. The functions that delete,
// and Compose, change something.
package bucket

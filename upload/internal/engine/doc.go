// Package engine sends one range of bytes to one object of the service, until the object exists.
// It knows no files, saved uploads or batches. A part of a file is only a number.
//
// The two main calls are [Run.Drive] and [Requester.Ask]. Drive makes an object of bytes that it
// sends through a session. An [Insertion] sends them in a single request. Ask repeats one request until its
// outcome is known. Perform of a conversation makes the exchange of an action, such as Run.send or Run.query, and HandleReply
// asks the table for the next one. The caller compares the finished object with the source: [Transfer.Verify].
//
// # The types
//
//   - A [Requester] makes one exchange at a time, under all limits, which are in its [Uplink].
//     [Requester.Converse] is the loop of all conversations.
//   - A [Retry] waits before each retry, and stops when the budget is spent.
//   - A [Conversation] makes the requests about one thing. The tables of package session decide what
//     follows a reply. Run and Insertion are conversations about an object, of which a [Transfer] has the bytes.
//
// # Guarantees
//   - A conversation has one request at a time.
//   - The [Recorder] of a session is durable with a range of bytes, or an earlier version of it is, before any of them is sent.
//   - No request is made without the [Permit], if there is one.
//   - Each event, wait and exchange is reported to the [Notes], which do not delay the upload.
//
// # Errors
//
// A refusal, and a failure after all retries, is a [*session.Error]. If the context is done, the
// error is an [*Interruption].
package engine

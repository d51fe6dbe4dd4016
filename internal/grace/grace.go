// Package grace has the times of an end by Ctrl-C. They are in one place because they nest: what a call waits
// for takes less time than the call, and what a command waits for less than the command. docs/explain/limits.md
// has them in order.
package grace

import "time"

const (
	// Requests bounds the requests after an upload was canceled: the query for the committed offset, and the
	// cancels of sessions and parts that are no longer needed.
	Requests = 1500 * time.Millisecond

	// Call is when a call returns whose context is done, although a read of its source or of the store, which
	// nothing can interrupt, has not returned. It is more than Requests.
	Call = 2 * time.Second

	// Event is how long a call then waits for its observer, so that a program that ends has received the last event.
	Event = 100 * time.Millisecond

	// Store is how long a store may take after an upload was canceled, in the background if the call has
	// returned. A command may have ended before.
	Store = 5 * time.Second
)

// The times of a command. Signal and Output begin with the signal, and the others, one after the other, when the
// calls have returned.
const (
	// Signal is how long another signal is ignored: some programs send a signal to the process and to its group.
	Signal = 500 * time.Millisecond

	// Output is how long a reader of the output, such as a pager, may take.
	Output = time.Second

	// Look is how long the command looks whether an upload is still saved, so that it prints how to continue.
	Look = time.Second

	// Command is how long the program whose output is uploaded may take to end before it is killed.
	Command = 2 * time.Second

	// Flush is how long a reader that still reads may take for the last lines.
	Flush = 200 * time.Millisecond

	// Scrape is how long the server of --listen waits for a request that it is answering.
	Scrape = time.Second
)

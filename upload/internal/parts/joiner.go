package parts

import (
	"context"
	"errors"

	"gcsup/session"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
)

// joiner sends parts and makes one object from them: a [composer] or a [multipart].
type joiner interface {
	// begin is called before parts are sent. It saves the Token if necessary, and
	// determines which parts the service has. It returns the object if an earlier request
	// made it, and otherwise nil.
	begin(ctx context.Context) (*session.Object, error)

	// send sends a part with a slot, and calls its method finish when the service has all
	// of it.
	send(ctx context.Context, p *filePart, slot *connections.Slot) error

	// join makes the object from the parts, which must all be finished. The error wraps
	// errPartMissing if the service no longer has some of them.
	join(ctx context.Context) (*session.Object, error)

	// clean removes everything except the object from the service. joined reports whether
	// the object was made. If it was not, clean also cancels open sessions. The error
	// describes what is left.
	clean(ctx context.Context, joined bool) error

	// committed requests from the service how many bytes of the parts it has, and changes nothing.
	committed(ctx context.Context) (engine.Held, error)
}

// errPartMissing means that the service no longer has a part.
var errPartMissing = errors.New("a part is missing")

// errSibling is the cause of the interruption of parts when another one failed.
var errSibling = errors.New("another part failed")

package session

import (
	"context"
	"errors"
	"strings"
)

// ErrNoToken says that there is no saved upload of that ID.
var ErrNoToken = errors.New("no such saved upload")

// Store keeps Tokens. Implementations must
//   - make Save atomic and durable: after a crash at any moment, Load gives
//     the old Token or the new one, never a third, and after Save has returned
//     the new one;
//   - keep what [Encode] gives secret;
//   - return errors that wrap [ErrNoToken], [ErrDamaged] and [ErrInUse] where
//     these apply;
//   - set a Token that Decode refuses aside, so that the next Load says
//     ErrNoToken, and the upload can start afresh;
//   - give up a lock when the process that holds it dies.
//
// IDs are those of Tokens: letters, digits, '-' and '_'.
type Store interface {
	Load(ctx context.Context, id string) (*Token, error)
	Save(ctx context.Context, t *Token) error
	List(ctx context.Context) ([]string, error) // IDs, sorted
	Delete(ctx context.Context, id string) error
	// Lock holds the upload for this process until unlock is called. It does
	// not wait: an upload that another holds is ErrInUse.
	Lock(ctx context.Context, id string) (unlock func(), err error)
}

func validID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return id != "" && len(id) <= 64 && strings.Trim(id, letters) == ""
}

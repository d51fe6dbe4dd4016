// Package brief lets an insert of package session ask the service only for what a program needs of the new object. A
// context selects it, because package session has no option that would be of use only to package upload.
package brief

import "context"

type key struct{}

// With returns a context whose inserts ask for a brief description of the object.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Wanted reports whether ctx is one of With.
func Wanted(ctx context.Context) bool { return ctx.Value(key{}) != nil }

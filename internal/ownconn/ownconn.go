// Package ownconn lets a request of package session use a connection of its own, for a network that drops idle
// connections silently. Before the request, session closes the idle connections of the HTTP client, which are probably
// broken too. Afterwards it closes the connection of the request. A GET may use an idle connection, because net/http
// repeats it on another one. So may each request if the HTTP client has a transport without the method
// CloseIdleConnections.
package ownconn

import "context"

type key struct{}

// With returns a context whose requests use connections of their own.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Wanted reports whether ctx is one of With.
func Wanted(ctx context.Context) bool { return ctx.Value(key{}) != nil }

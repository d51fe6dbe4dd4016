package gcs

import (
	"context"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/compute/metadata"
)

// writing are the scopes that permit uploads,
// https://cloud.google.com/storage/docs/authentication#oauth-scopes. By default a Compute Engine
// machine has only devstorage.read_only.
var writing = []string{
	"https://www.googleapis.com/auth/cloud-platform",
	"https://www.googleapis.com/auth/devstorage.full_control",
	"https://www.googleapis.com/auth/devstorage.read_write",
	"https://www.googleapis.com/auth/devstorage.write_only",
}

// machineScopes are the access scopes of the machine, which limit its tokens. They are read once.
type machineScopes struct {
	mu     sync.Mutex
	scopes []string
}

// scopesTimeout bounds the question, which delays only the report of a refusal.
const scopesTimeout = 2 * time.Second

// tooFew returns the scopes if they permit no uploads, and nil if they permit some or the metadata
// server does not tell.
func (m *machineScopes) tooFew(ctx context.Context) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scopes == nil {
		ctx, cancel := context.WithTimeout(ctx, scopesTimeout)
		defer cancel()
		m.scopes, _ = metadata.ScopesWithContext(ctx, "default")
	}
	if slices.ContainsFunc(m.scopes, func(s string) bool { return slices.Contains(writing, s) }) {
		return nil
	}
	return m.scopes
}

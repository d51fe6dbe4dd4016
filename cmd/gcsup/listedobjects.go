package main

import (
	"sync"

	"gcsup/session"
)

// listedObjects has what a listing found at the destinations that are being compared. The
// zero value is empty.
type listedObjects struct {
	mu      sync.Mutex
	objects map[string]*session.Object // by URL; nil if there is none
	failure error
}

// put records what the listing has at a destination.
func (l *listedObjects) put(destination string, o *session.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects == nil {
		l.objects = map[string]*session.Object{}
	}
	l.objects[destination] = o
}

// take returns what the listing has at a destination, and forgets it.
func (l *listedObjects) take(destination string) (o *session.Object, listed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, listed = l.objects[destination]
	delete(l.objects, destination)
	return o, listed
}

// failed records the error that ended the listing.
func (l *listedObjects) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
}

// err returns the error that ended the listing, or nil.
func (l *listedObjects) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

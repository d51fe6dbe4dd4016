package memnet

// Unexported names for the tests of package memnet_test.

var ErrRefused, ErrReset, ErrPipe = errRefused, errReset, errPipe

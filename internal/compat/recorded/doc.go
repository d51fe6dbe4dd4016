// Package recorded compares package fakegcs with public recordings of the real service.
//
// Two Go modules contain such recordings: cloud.google.com/go/storage, of 2019, and
// gocloud.dev, of 2026. Each is a list of requests with the replies of the service, without
// credentials. The test gets both modules from the module proxy, at fixed versions, sends each
// request to fakegcs in the recorded order, and compares the replies: the status, the headers, and
// each field of the JSON or XML body. No recording is part of this repository.
//
// Every difference that remains has a row in [accepted] with the reason why fakegcs
// is right. A new difference fails the test, and so does a row that no difference needs.
// docs/emulator/emulator.md has the counts; go test -run TestRecordings -update writes them.
//
// The package is a module of its own, so that the tests of gcsup need no recordings.
package recorded

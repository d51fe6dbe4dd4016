// Package faults describes the faults of a server of package fakegcs: which requests
// they match, and what happens to these.
//
// A plan is a list of faults, in the options of the server or added while it runs:
//
//	err := srv.AddFaults(faults.Fault{
//		Match: faults.Match{Op: faults.OpPut}, Times: 3,
//		Do:    faults.Action{Effect: faults.EffectCutRequest, Bytes: 300_000},
//	})
//
// [Parse] reads a plan from JSON, and [Random] makes one from a seed.
//
// # Guarantees
//
//   - The values are data: nothing here sends or answers a request.
//   - A plan that [Parse] returns is valid. [Fault.Validate] checks one from Go, as the
//     server does.
//   - The JSON form of a fault is the same in files, over HTTP, and in reports.
package faults

package.path = (arg[0]:match("^(.*)/tests/[^/]*$") or ".") .. "/?.lua;" .. package.path
local mold = require("mold")

local failed = 0

local function check(what, got, expected)
  if got ~= expected then
    failed = failed + 1
    print(("FAILED: %s\n  expected: %q\n  got:      %q"):format(what, expected, got))
  end
end

local data = mold.read_data("name = Ann \nempty =\n")
check("a name", mold.render("Dear {{name}},", data), "Dear Ann,")
check("blanks inside", mold.render("{{ name }}", data), "Ann")
check("nothing", mold.render("<{{empty}}{{missing}}>", data), "<>")

os.exit(failed == 0)

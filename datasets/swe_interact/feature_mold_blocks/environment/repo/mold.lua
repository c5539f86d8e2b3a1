--- Fills names into templates: `Dear {{name}},`.

local mold = {}

--- Read data: lines like `name = value`. Later lines win.
function mold.read_data(text)
  local data = {}
  for line in text:gmatch("[^\n]+") do
    local name, value = line:match("^%s*([%w_]+)%s*=%s*(.-)%s*$")
    if name then
      data[name] = value
    end
  end
  return data
end

--- Return a template with the data in it. What is not in the data becomes nothing.
function mold.render(template, data)
  return (template:gsub("{{%s*([%w_]+)%s*}}", function(name)
    return data[name] or ""
  end))
end

return mold
